# Words by launch, block and epoch; sets of the threads that read, write and update each.
from collections import defaultdict


def classify(trace):
    for block in (block for launch in trace for block in launch):
        barriers = [[op.kind for op in thread].count("barrier") for thread in block]
        if min(barriers) != max(barriers):
            return "deadlock"
    who = defaultdict(lambda: defaultdict(set))
    for at, launch in enumerate(trace):
        for b, block in enumerate(launch):
            for t, thread in enumerate(block):
                epoch = 0
                for op in thread:
                    if op.kind == "barrier":
                        epoch += 1
                    else:
                        who[at, b, epoch, op.space, op.place][op.kind].add((b, t))
                        if op.space == "global":
                            who[at, "all", op.place][op.kind].add(b)
    for kinds in who.values():
        everybody = set().union(*kinds.values())
        if len(everybody) > 1 and set(kinds) not in ({"read"}, {"atomic"}):
            return "race"
    return "right"
