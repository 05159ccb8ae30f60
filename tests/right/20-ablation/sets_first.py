# Lists the sets first, runs each of them, and reads everything off the table; pairs in the other order.
def ablation(run, knobs):
    everything = frozenset(knobs)
    sets = {frozenset(), everything}
    for a in knobs:
        sets |= {frozenset([a]), everything - {a}} | {frozenset([a, b]) for b in knobs}
    peak = {some: float(run(sorted(some))) for some in sets}
    none = peak[frozenset()]
    alone = {a: none - peak[frozenset([a])] for a in knobs}
    extra = {}
    for i, a in enumerate(knobs):
        for b in knobs[:i]:
            extra[a, b] = (none - peak[frozenset([a, b])]) - (alone[a] + alone[b])
    return {
        "names": {
            pair: ("independent", "help", "overlap")[0 if abs(x) <= none / 100 else 1 if x > 0 else 2]
            for pair, x in extra.items()
        },
        "extra": extra,
        "alone": alone,
        "last": {a: peak[everything - {a}] - peak[everything] for a in knobs},
        "together": none - peak[everything],
    }
