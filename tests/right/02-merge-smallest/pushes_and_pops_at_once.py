# pushes and pops at once
def merge_smallest(values):
    h = [*values]
    heapq.heapify(h)
    s = heapq.heappop(h)
    while h:
        s = heapq.heappushpop(h, s + heapq.heappop(h))
    return s
