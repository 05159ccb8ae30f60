# A clock for each block; two accesses by one thread, or with different clocks in one block, are ordered.
from itertools import combinations


def classify(trace):
    verdict = "right"
    for launch in trace:
        accesses = []
        for b, block in enumerate(launch):
            clocks = []
            for t, thread in enumerate(block):
                clock = 0
                for kind, space, place in thread:
                    clock += kind == "barrier"
                    if kind != "barrier":
                        accesses.append((b, t, clock, kind, (space, place) if space == "global" else (b, place)))
                clocks.append(clock)
            if any(clock != clocks[0] for clock in clocks):
                return "deadlock"
        for (b, t, clock, kind, word), (b2, t2, clock2, kind2, word2) in combinations(accesses, 2):
            if word == word2 and (b, t) != (b2, t2) and (b != b2 or clock == clock2):
                if "write" in (kind, kind2) or kind != kind2:
                    verdict = "race"
    return verdict
