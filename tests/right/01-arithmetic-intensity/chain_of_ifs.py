# elements first, and bytes once at the end
def peak_flops(n_sms, fma_per_clock, clock_hz):
    return n_sms * fma_per_clock * 2 * clock_hz


def operator_cost(operator, rows, cols, n_out, itemsize):
    if operator == "add":
        flops, elements = rows * cols, 3 * rows * cols
    elif operator == "softmax":
        flops, elements = 5 * rows * cols, 2 * rows * cols
    elif operator == "layernorm":
        flops, elements = 7 * rows * cols, 2 * rows * cols + 2 * cols
    else:
        flops, elements = 2 * rows * cols * n_out, rows * cols + cols * n_out + rows * n_out
    return flops, elements * itemsize


def least_time(flops, n_bytes, peak, bandwidth):
    compute_s, memory_s = flops / peak, n_bytes / bandwidth
    return max(compute_s, memory_s), "compute" if compute_s > memory_s else "memory"
