import warnings
from queue import PriorityQueue


class Parts:
    def __init__(self, values):
        warnings.warn("heap ahead")
        self.heap = []
        for value in values:
            heapq.heappush(self.heap, value)

    def merge(self):
        a, b = heapq.heappop(self.heap), heapq.heappop(self.heap)
        heapq.heappush(self.heap, a + b)


def merge_smallest(values):
    parts = Parts(values)
    for _ in range(len(values) - 1):
        parts.merge()
    return parts.heap[0]
