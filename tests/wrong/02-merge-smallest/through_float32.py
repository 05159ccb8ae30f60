# hint: Stay with Python's floats
def merge_smallest(values):
    heap = torch.tensor(values).tolist()
    heapq.heapify(heap)
    while len(heap) > 1:
        heapq.heappush(heap, heapq.heappop(heap) + heapq.heappop(heap))
    return heap[0]
