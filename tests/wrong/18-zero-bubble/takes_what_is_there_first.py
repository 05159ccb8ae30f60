# hint: weight gradients stand where stages do not need them
def zero_bubble(forward, input_grad, weight_grad, n_microbatches, memory):
    p, times = len(forward), {"F": forward, "I": input_grad, "W": weight_grad}
    ends, orders, free = {}, [[] for _ in range(p)], [0.0] * p
    count = [dict.fromkeys("FIW", 0) for _ in range(p)]
    for _ in range(3 * p * n_microbatches):
        choices = []
        for s, n in enumerate(count):
            for rank, kind in enumerate("IFW"):
                i = n[kind]
                needs = {"F": [("F", s - 1, i)] * (s > 0), "W": [("I", s, i)]}.get(kind)
                if kind == "I":
                    needs = [("F", s, i), *([("I", s + 1, i)] if s < p - 1 else [])]
                full = kind == "F" and n["F"] - n["W"] == memory
                if i < n_microbatches and not full and all(one in ends for one in needs):
                    choices.append((max([free[s], *(ends[one] for one in needs)]), rank, s, kind))
        begin, _, s, kind = min(choices)
        i = count[s][kind]
        ends[kind, s, i] = free[s] = begin + times[kind][s]
        orders[s].append((kind, i))
        count[s][kind] += 1
    return orders
