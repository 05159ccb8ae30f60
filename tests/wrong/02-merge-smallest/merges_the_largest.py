# hint: The two largest were merged
def merge_smallest(values):
    heap = [-v for v in values]
    heapq.heapify(heap)
    while len(heap) > 1:
        heapq.heappush(heap, heapq.heappop(heap) + heapq.heappop(heap))
    return -heap[0]
