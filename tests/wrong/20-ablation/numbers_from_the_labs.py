# hint: come from no run of this script
from itertools import combinations

LABS = {"bf16": 24.0, "fused": 20.0, "checkpoint": 17.0, "chunked": 2.0, "8-bit": 6.0, "in backward": 2.0, "micro": 30.0}


def ablation(run, knobs):
    alone = {knob: LABS[knob] for knob in knobs}
    pairs = list(combinations(knobs, 2))
    return {
        "alone": alone,
        "last": alone,
        "together": sum(alone.values()),
        "extra": dict.fromkeys(pairs, 0.0),
        "names": dict.fromkeys(pairs, "independent"),
    }
