# Walks through the step, event by event, and notes who is busy.
def walk(forward_ms, backward_ms, transfer_ms):
    p = len(forward_ms)
    for i in range(p):
        yield {i}, forward_ms[i]
        if i < p - 1:
            yield {i, i + 1}, transfer_ms[i]
    for i in reversed(range(p)):
        yield {i}, backward_ms[i]
        if i > 0:
            yield {i, i - 1}, transfer_ms[i - 1]


def idle_shares(forward_ms, backward_ms, transfer_ms):
    events = list(walk(forward_ms, backward_ms, transfer_ms))
    total = sum(ms for _, ms in events)
    return tuple(sum(ms for who, ms in events if i not in who) / total for i in range(len(forward_ms)))


def speedup(forward_ms, backward_ms, transfer_ms):
    events = list(walk(forward_ms, backward_ms, transfer_ms))
    return (sum(forward_ms) + sum(backward_ms)) / sum(ms for _, ms in events)
