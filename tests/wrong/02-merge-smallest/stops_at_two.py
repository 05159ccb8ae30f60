# hint: Values were lost, or counted twice
def merge_smallest(values):
    heap = list(values)
    heapq.heapify(heap)
    while len(heap) > 2:
        heapq.heappush(heap, heapq.heappop(heap) + heapq.heappop(heap))
    return heap[0]
