# hint: one access that changes the word is enough
def classify(trace):
    for launch in trace:
        for block in launch:
            if len({sum(op.kind == "barrier" for op in thread) for thread in block}) > 1:
                return "deadlock"
    for launch in trace:
        writes = []
        for b, block in enumerate(launch):
            for t, thread in enumerate(block):
                epoch = 0
                for op in thread:
                    epoch += op.kind == "barrier"
                    if op.kind == "write":
                        word = (op.space, op.place, b if op.space == "shared" else None)
                        for other, place, at in writes:
                            if other == word and place != (b, t) and (place[0] != b or at == epoch):
                                return "race"
                        writes.append((word, (b, t), epoch))
    return "right"
