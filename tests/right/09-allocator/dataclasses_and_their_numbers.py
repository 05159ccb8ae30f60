# a block is found by the numbers of its segment and its place
@dataclass(eq=False)
class Block:
    size: int
    used: bool = False
@dataclass(eq=False)
class Segment:
    small: bool
    blocks: list
MB = 1 << 20
def replay_trace(trace):
    segments, where, rows = [], {}, []
    alloc = reserved = nm = nf = 0
    for kind, ticket, n in trace:
        if kind == "malloc":
            size = -(-n // 512) * 512
            small = size <= MB
            fits = [(b.size, i, j) for i, s in enumerate(segments) if s.small == small for j, b in enumerate(s.blocks) if not b.used and b.size >= size]
            if fits:
                _, i, j = min(fits)
            else:
                total = 2 * MB if small else 20 * MB if size < 10 * MB else -(-size // (2 * MB)) * 2 * MB
                segments.append(Segment(small, [Block(total)]))
                reserved += total
                nm += 1
                i, j = len(segments) - 1, 0
            seg = segments[i]
            b = seg.blocks[j]
            rest = b.size - size
            if rest >= 512 if small else rest > MB:
                b.size = size
                seg.blocks.insert(j + 1, Block(rest))
            b.used = True
            alloc += b.size
            where[ticket] = (seg, b)
        elif kind == "free":
            seg, b = where.pop(ticket)
            b.used = False
            alloc -= b.size
            merged = []
            for x in seg.blocks:
                if merged and not merged[-1].used and not x.used:
                    merged[-1].size += x.size
                else:
                    merged.append(x)
            seg.blocks = merged
        else:
            keep = []
            for s in segments:
                if len(s.blocks) == 1 and not s.blocks[0].used:
                    nf += 1
                    reserved -= s.blocks[0].size
                else:
                    keep.append(s)
            segments[:] = keep
        rows.append((alloc, reserved, nm, nf))
    return rows
def slow_down(before, step, step_ms, malloc_ms, free_ms):
    def third(with_ec):
        one = list(step) + ([("empty_cache", 0, 0)] if with_ec else [])
        rows = replay_trace(list(before) + one * 3)
        end = rows[-1]
        start = rows[len(rows) - len(one) - 1]
        return step_ms + (end[2] - start[2]) * malloc_ms + (end[3] - start[3]) * free_ms
    return third(True) / third(False)
