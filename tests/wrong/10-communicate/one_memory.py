# hint: This takes shared[3] and global[3] for the same word
def classify(trace: list) -> str:
    for launch in trace:
        for block in launch:
            if len({sum(op.kind == "barrier" for op in thread) for thread in block}) > 1:
                return "deadlock"
    for launch in trace:
        earlier = []
        for b, block in enumerate(launch):
            for t, thread in enumerate(block):
                epoch = 0
                for op in thread:
                    if op.kind == "barrier":
                        epoch += 1
                        continue
                    for other_b, other_t, other_epoch, other in earlier:
                        own = "shared" in (op.space, other.space) and other_b != b and op.space == other.space
                        if op.place != other.place or own or (other_b, other_t) == (b, t):
                            continue
                        ordered = other_b == b and other_epoch != epoch
                        harmless = other.kind == op.kind and op.kind in ("read", "atomic")
                        if not ordered and not harmless:
                            return "race"
                    earlier.append((b, t, epoch, op))
    return "right"
