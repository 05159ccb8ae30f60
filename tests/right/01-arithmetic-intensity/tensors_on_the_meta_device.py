# asks PyTorch how large the tensors are
def peak_flops(n_sms, fma_per_clock, clock_hz):
    return n_sms * fma_per_clock * 2 * clock_hz


from math import prod

DTYPES = {2: torch.half, 4: torch.float, 8: torch.double}
SHAPES = {
    "add": lambda rows, cols, n_out: [(rows, cols)] * 3,
    "softmax": lambda rows, cols, n_out: [(rows, cols)] * 2,
    "layernorm": lambda rows, cols, n_out: [(rows, cols)] * 2 + [(cols,)] * 2,
    "linear": lambda rows, cols, n_out: [(rows, cols), (cols, n_out), (rows, n_out)],
}


class operator_cost(tuple):
    def __new__(cls, operator, rows, cols, n_out, itemsize):
        shapes = SHAPES[operator](rows, cols, n_out)
        moved = sum(torch.empty(s, dtype=DTYPES[itemsize], device="meta").nbytes for s in shapes)
        per_output = {"add": 1, "softmax": 5, "layernorm": 7, "linear": 2 * cols}[operator]
        return (per_output * prod(shapes[-1] if operator == "linear" else shapes[0]), moved)


def least_time(flops, n_bytes, peak, bandwidth):
    compute_s, memory_s = flops / peak, n_bytes / bandwidth
    return max(compute_s, memory_s), "compute" if compute_s > memory_s else "memory"
