# Walks through all schedules that could be the shortest, and turns back where one cannot be.
def zero_bubble(forward, input_grad, weight_grad, n_microbatches, memory):
    p, m, times = len(forward), n_microbatches, (forward, input_grad, weight_grad)
    if len({*forward, *input_grad, *weight_grad}) == 1:
        return [like_1f1b(stage, p, m) for stage in range(p)]
    best, seen = [float("inf"), None], {}

    def go(count, free, ends, orders):
        left = [free[s] + sum((m - n) * each[s] for n, each in zip(count[s], times)) for s in range(p)]
        if max(left) >= best[0]:
            return
        pending = [
            [ends[0][s][i] for i in range(count[s + 1][0], count[s][0])] if s < p - 1 else [] for s in range(p)
        ] + [[ends[1][s][i] for i in range(count[s - 1][1], count[s][1])] if s else [] for s in range(p)]
        now = [*free, *(end for each in pending for end in each)]
        others = seen.setdefault(count, [])
        if any(all(a <= b for a, b in zip(other, now)) for other in others):
            return
        others.append(now)
        choices = []
        for s, (f, i, w) in enumerate(count):
            if f < m and f - w < memory and (s == 0 or f < count[s - 1][0]):
                choices.append((max(free[s], ends[0][s - 1][f] if s else 0.0), s, 0))
            if i < f and (s == p - 1 or i < count[s + 1][1]):
                choices.append((max(free[s], ends[1][s + 1][i] if s < p - 1 else 0.0), s, 1))
            if w < i:
                choices.append((free[s], s, 2))
        if not choices:
            best[:] = [max(free), orders]
            return
        first, stage = min((begin + times[kind][s], s) for begin, s, kind in choices)
        for begin, s, kind in sorted(choices, key=lambda choice: (0, -1, 1)[choice[2]]):
            if s == stage and begin < first:
                end, n = begin + times[kind][s], count[s][kind]
                more = tuple(c + (k == kind) for k, c in enumerate(count[s]))
                after = [[list(one) for one in each] for each in ends]
                if kind < 2:
                    after[kind][s].append(end)
                longer = [[*order, ("FIW"[kind], n)] if at == s else order for at, order in enumerate(orders)]
                go((*count[:s], more, *count[s + 1 :]), [*free[:s], end, *free[s + 1 :]], after, longer)

    go(((0, 0, 0),) * p, [0.0] * p, [[[] for _ in range(p)] for _ in range(2)], [[] for _ in range(p)])
    return best[1]


def like_1f1b(stage, p, m):
    passes = [("F", i) for i in range(m)]
    order, passes = passes[: p - 1 - stage], passes[p - 1 - stage :]
    for i in range(m):
        order += [*passes[i : i + 1], ("I", i), *[("W", i - stage)][: i >= stage]]
    return order + [("W", i) for i in range(m) if i >= m - stage]
