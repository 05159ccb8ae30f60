def replay_trace(trace):
    sizes, pool = [], []
    used, free = {}, set()
    rows, calls = [], [0, 0]
    gone = set()
    for kind, ticket, n_bytes in trace:
        if kind == "malloc":
            size = (n_bytes + 511) & ~511
            small = size <= 1 << 20
            best = min(
                ((end - start, where, start) for where, start, end in free if pool[where] == small and end - start >= size),
                default=None,
            )
            if best is None:
                if small:
                    total = 2 << 20
                elif size < 10 << 20:
                    total = 20 << 20
                else:
                    total = (size + (2 << 20) - 1) // (2 << 20) * (2 << 20)
                sizes.append(total)
                pool.append(small)
                calls[0] += 1
                best = total, len(sizes) - 1, 0
                free.add((best[1], 0, total))
            length, where, start = best
            free.remove((where, start, start + length))
            if length - size >= (512 if small else (1 << 20) + 512):
                free.add((where, start + size, start + length))
                length = size
            used[ticket] = where, start, start + length
        elif kind == "free":
            where, start, end = used.pop(ticket)
            for other in [one for one in free if one[0] == where and (one[2] == start or one[1] == end)]:
                free.remove(other)
                start, end = min(start, other[1]), max(end, other[2])
            free.add((where, start, end))
        else:
            for where, start, end in list(free):
                if end - start == sizes[where]:
                    free.remove((where, start, end))
                    gone.add(where)
                    calls[1] += 1
        reserved = sum(size for where, size in enumerate(sizes) if where not in gone)
        rows.append([sum(end - start for _, start, end in used.values()), reserved, *calls])
    return rows


def slow_down(before, step, step_ms, malloc_ms, free_ms):
    def time(extra):
        one = list(step) + extra
        early, late = (replay_trace(list(before) + one * n)[-1] for n in (2, 3))
        return step_ms + malloc_ms * (late[2] - early[2]) + free_ms * (late[3] - early[3])

    return time([("empty_cache", 0, 0)]) / time([])
