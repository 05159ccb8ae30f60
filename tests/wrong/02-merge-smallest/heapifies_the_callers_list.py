# hint: The caller's list was changed
def merge_smallest(values):
    heapq.heapify(values)
    while len(values) > 1:
        a = heapq.heappop(values)
        b = heapq.heappop(values)
        heapq.heappush(values, a + b)
    return values[0]
