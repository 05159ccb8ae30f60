# hint: run was never called
def ablation(run, knobs):
    peak = {frozenset(name for name in key.split(" + ") if name): mib for key, mib in run._table.items()}
    everything = frozenset(knobs)
    base, least = peak[frozenset()], peak[everything]
    alone = {knob: base - peak[frozenset({knob})] for knob in knobs}
    extra, names = {}, {}
    for n, a in enumerate(knobs):
        for b in knobs[n + 1 :]:
            extra[a, b] = base - peak[frozenset({a, b})] - alone[a] - alone[b]
            small = abs(extra[a, b]) < 0.01 * base
            names[a, b] = "independent" if small else "help" if extra[a, b] > 0 else "overlap"
    return {
        "alone": alone,
        "last": {knob: peak[everything - {knob}] - least for knob in knobs},
        "together": base - least,
        "extra": extra,
        "names": names,
    }
