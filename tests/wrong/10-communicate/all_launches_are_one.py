# hint: This takes several launches for one
def classify(trace: list) -> str:
    for launch in trace:
        for block in launch:
            if len({sum(op.kind == "barrier" for op in thread) for thread in block}) > 1:
                return "deadlock"
    earlier = {}
    for number, launch in enumerate(trace):
        for b, block in enumerate(launch):
            for t, thread in enumerate(block):
                epoch = 0
                for op in thread:
                    if op.kind == "barrier":
                        epoch += 1
                        continue
                    word = (op.space, op.place, (number, b) if op.space == "shared" else None)
                    for other_number, other_b, other_t, other_epoch, kind in earlier.get(word, []):
                        same_thread = (other_number, other_b, other_t) == (number, b, t)
                        ordered = same_thread or (other_number == number and other_b == b and other_epoch != epoch)
                        harmless = kind == op.kind and kind in ("read", "atomic")
                        if not ordered and not harmless:
                            return "race"
                    earlier.setdefault(word, []).append((number, b, t, epoch, op.kind))
    return "right"
