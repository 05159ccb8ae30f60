from collections import deque


def merge_smallest(values):
    """Sort once; merged sums come out in ascending order, so a second queue stays sorted by itself."""
    fresh, merged = deque(sorted(values)), deque()

    def take():
        if not merged or (fresh and fresh[0] <= merged[0]):
            return fresh.popleft()
        return merged.popleft()

    while len(fresh) + len(merged) > 1:
        merged.append(take() + take())
    return take()
