# hint: a list that is no heap yet
def merge_smallest(values):
    heap = list(values)
    while len(heap) > 1:
        a = heapq.heappop(heap)
        b = heapq.heappop(heap)
        heapq.heappush(heap, a + b)
    return heap[0]
