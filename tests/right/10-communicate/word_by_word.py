# Its own numbering of the barriers, and a dictionary from the word to the accesses so far.
def classify(trace):
    for launch in trace:
        for block in launch:
            if len({sum(op.kind == "barrier" for op in thread) for thread in block}) > 1:
                return "deadlock"
    for launch in trace:
        earlier = {}
        for b, block in enumerate(launch):
            for t, thread in enumerate(block):
                epoch = 0
                for op in thread:
                    if op.kind == "barrier":
                        epoch += 1
                        continue
                    word = (op.space, op.place, b if op.space == "shared" else None)
                    for other_b, other_t, other_epoch, kind in earlier.get(word, []):
                        same_thread = (other_b, other_t) == (b, t)
                        ordered = same_thread or (other_b == b and other_epoch != epoch)
                        harmless = kind == op.kind and kind in ("read", "atomic")
                        if not ordered and not harmless:
                            return "race"
                    earlier.setdefault(word, []).append((b, t, epoch, op.kind))
    return "right"
