# hint: Reserved is taken for allocated
def replay_trace(trace):
    segments, held, rows = [], {}, []
    allocated = n_mallocs = n_frees = 0
    for kind, ticket, n_bytes in trace:
        if kind == "malloc":
            wanted = -(-n_bytes // 512) * 512
            small = wanted <= 2**20
            found = best_fit(segments, small, wanted)
            if found is None:
                segment = {"small": small, "blocks": [[segment_bytes(wanted), False]]}
                segments.append(segment)
                n_mallocs += 1
                found = segment, segment["blocks"][0]
            segment, block = found
            rest = block[0] - wanted
            if rest >= 512 if small else rest > 2**20:
                block[0] = wanted
                at = index_of(segment["blocks"], block)
                segment["blocks"].insert(at + 1, [rest, False])
            block[1] = True
            held[ticket] = found
            allocated += block[0]
        elif kind == "free":
            segment, block = held.pop(ticket)
            block[1] = False
            allocated -= block[0]
            join(segment["blocks"], block)
        else:
            empty = [one for one in segments if len(one["blocks"]) == 1 and not one["blocks"][0][1]]
            n_frees += len(empty)
            segments = [one for one in segments if not any(one is other for other in empty)]
        reserved = sum(block[0] for one in segments for block in one["blocks"])
        rows.append((reserved, allocated, n_mallocs, n_frees))
    return rows


def index_of(blocks, block):
    return next(at for at, one in enumerate(blocks) if one is block)


def segment_bytes(wanted):
    if wanted <= 2**20:
        return 2 * 2**20
    return 20 * 2**20 if wanted < 10 * 2**20 else -(-wanted // 2**21) * 2**21


def best_fit(segments, small, wanted):
    fits = [
        (segment, block)
        for segment in segments
        if segment["small"] == small
        for block in segment["blocks"]
        if not block[1] and block[0] >= wanted
    ]
    return min(fits, key=lambda pair: pair[1][0], default=None)


def join(blocks, block):
    at = index_of(blocks, block)
    if at + 1 < len(blocks) and not blocks[at + 1][1]:
        block[0] += blocks.pop(at + 1)[0]
    if at > 0 and not blocks[at - 1][1]:
        blocks[at - 1][0] += blocks.pop(at)[0]


def slow_down(before, step, step_ms, malloc_ms, free_ms):
    def third_ms(one):
        rows = replay_trace([*before, *one * 3])
        n_mallocs, n_frees = (rows[-1][at] - rows[-1 - len(one)][at] for at in (2, 3))
        return step_ms + malloc_ms * n_mallocs + free_ms * n_frees

    return third_ms([*step, ("empty_cache", 0, 0)]) / third_ms(list(step))
