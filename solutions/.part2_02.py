# %% nbgrader={"grade": false, "grade_id": "02-sums", "locked": false, "schema_version": 3, "solution": true, "task": false}
def naive_sum(x: torch.Tensor) -> torch.Tensor:
    """Sum of at least one element, first to last, with an accumulator of x.dtype; the result has x.dtype too."""
    ### BEGIN SOLUTION
    total = torch.zeros((), dtype=x.dtype)
    for value in x:
        total = total + value
    return total
    ### END SOLUTION


def sorted_sum(x: torch.Tensor) -> torch.Tensor:
    """The same sum, taken from the smallest magnitude to the largest."""
    ### BEGIN SOLUTION
    return naive_sum(x[x.abs().argsort()])
    ### END SOLUTION


def pairwise_sum(x: torch.Tensor) -> torch.Tensor:
    """Each half summed by itself in the same way, then added: no element meets more than ceil(log2(n)) additions."""
    ### BEGIN SOLUTION
    if len(x) == 1:
        return x[0]
    middle = len(x) // 2
    return pairwise_sum(x[:middle]) + pairwise_sum(x[middle:])
    ### END SOLUTION


def neumaier_sum(x: torch.Tensor) -> torch.Tensor:
    """First to last with one running compensation, both of x.dtype; the compensation is added at the end."""
    ### BEGIN SOLUTION
    total = torch.zeros((), dtype=x.dtype)
    compensation = torch.zeros((), dtype=x.dtype)
    for value in x:
        new_total = total + value
        if total.abs() >= value.abs():
            compensation = compensation + ((total - new_total) + value)
        else:
            compensation = compensation + ((value - new_total) + total)
        total = new_total
    return total + compensation
    ### END SOLUTION

# %% nbgrader={"grade": false, "grade_id": "02-merge-smallest", "locked": false, "schema_version": 3, "solution": true, "task": false}
def merge_smallest(values: list[float]) -> float:
    """Sum of at least one number >= 0, in any order: the two smallest partial sums are added until one is left.

    Python's own additions; equal values may be taken in either order. `values` stays as it is.
    """
    ### BEGIN SOLUTION
    parts = list(values)
    heapq.heapify(parts)
    while len(parts) > 1:
        smallest = heapq.heappop(parts)
        heapq.heapreplace(parts, smallest + parts[0])
    return parts[0]
    ### END SOLUTION

# %% nbgrader={"grade": false, "grade_id": "02-blocked-sum", "locked": false, "schema_version": 3, "solution": true, "task": false}
def blocked_sum(x: torch.Tensor, dim: int, block_size: int) -> torch.Tensor:
    """Sum over axis `dim` (which may be negative) in float32, block_size slices at a time; that axis is gone after.

    Never more than one block in float32 beside x, and one PyTorch call for a whole block.
    """
    ### BEGIN SOLUTION
    total = torch.zeros_like(x.select(dim, 0), dtype=torch.float32)
    for block in x.split(block_size, dim):
        total += block.float().sum(dim)
    return total
    ### END SOLUTION

# %% nbgrader={"grade": false, "grade_id": "02-stochastic-rounding", "locked": false, "schema_version": 3, "solution": true, "task": false}
def stochastic_round(x: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Each element to the bfloat16 below or above it, with the chances that make the mean equal to x.

    What bfloat16 has stays, so do inf and NaN; a finite x never becomes inf. All draws come from `generator`.
    """
    ### BEGIN SOLUTION
    bits = x.view(torch.int32)
    noise = torch.randint(2**16, x.shape, generator=generator, device=x.device, dtype=torch.int32)
    toward_zero = (bits & -(2**16)).view(torch.float32)
    rounded = ((bits + noise) & -(2**16)).view(torch.float32)
    rounded = torch.where(rounded.isfinite(), rounded, toward_zero)
    return torch.where(x.isfinite(), rounded, x).to(torch.bfloat16)
    ### END SOLUTION
