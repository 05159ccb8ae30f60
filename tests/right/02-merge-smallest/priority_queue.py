# priority queue
def merge_smallest(values):
    from queue import PriorityQueue

    q = PriorityQueue()
    for v in values:
        q.put(v)
    for _ in range(len(values) - 1):
        q.put(q.get() + q.get())
    return q.get()
