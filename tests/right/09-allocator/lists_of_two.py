# a block is a list of its size and whether it is used
def replay_trace(trace):
    segs = []  # [pool, [[size, used], ...]]
    where = {}
    alloc = res = nm = nf = 0
    rows = []
    for op, t, n in trace:
        if op == "malloc":
            size = -(-n // 512) * 512
            small = size <= 2**20
            best = None
            for seg in segs:
                if seg[0] != small:
                    continue
                for b in seg[1]:
                    if not b[1] and b[0] >= size and (best is None or b[0] < best[1][0]):
                        best = (seg, b)
            if best is None:
                if small:
                    s = 2 * 2**20
                elif size < 10 * 2**20:
                    s = 20 * 2**20
                else:
                    s = -(-size // 2**21) * 2**21
                seg = [small, [[s, False]]]
                segs.append(seg)
                nm += 1
                res += s
                best = (seg, seg[1][0])
            seg, b = best
            rest = b[0] - size
            if (small and rest >= 512) or (not small and rest > 2**20):
                at = next(i for i, x in enumerate(seg[1]) if x is b)
                seg[1].insert(at + 1, [rest, False])
                b[0] = size
            b[1] = True
            alloc += b[0]
            where[t] = (seg, b)
        elif op == "free":
            seg, b = where.pop(t)
            b[1] = False
            alloc -= b[0]
            new = []
            for x in seg[1]:
                if new and not new[-1][1] and not x[1]:
                    new[-1][0] += x[0]
                else:
                    new.append(x)
            seg[1] = new
        else:
            keep = []
            for seg in segs:
                if len(seg[1]) == 1 and not seg[1][0][1]:
                    nf += 1
                    res -= seg[1][0][0]
                else:
                    keep.append(seg)
            segs = keep
        rows.append((alloc, res, nm, nf))
    return rows


def slow_down(before, step, step_ms, malloc_ms, free_ms):
    def third(st):
        rows = [(0, 0, 0, 0)] + replay_trace([*before, *(list(st) * 3)])
        a = rows[-1]
        b = rows[-1 - len(st)]
        return step_ms + (a[2] - b[2]) * malloc_ms + (a[3] - b[3]) * free_ms

    return third([*step, ("empty_cache", 0, 0)]) / third(step)
