# hint: a list that is no heap yet
def merge_smallest(values):
    heap = values.copy()
    while len(heap) > 1:
        smallest = heapq.heappop(heap)
        heapq.heapreplace(heap, smallest + heap[0])
    return heap[0]
