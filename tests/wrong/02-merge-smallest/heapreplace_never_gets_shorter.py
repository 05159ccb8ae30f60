# hint: Each turn must leave one entry less
def merge_smallest(values):
    heap = list(values)
    heapq.heapify(heap)
    for _ in range(len(values) - 1):
        heapq.heapreplace(heap, heap[0] + heap[1])
    return heap[0]
