# hint: spelled so, and nothing else
def classify(trace):
    for launch in trace:
        for block in launch:
            if len({sum(op.kind == "barrier" for op in thread) for thread in block}) > 1:
                return "Deadlock"
    return "Right"
