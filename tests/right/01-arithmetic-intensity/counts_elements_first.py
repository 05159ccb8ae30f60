# counts elements, and turns them into bytes at the end
def peak_flops(n_sms, fma_per_clock, clock_hz):
    return n_sms * fma_per_clock * 2 * clock_hz


def operator_cost(operator, rows, cols, n_out, itemsize):
    n = rows * cols
    if operator == "add":
        f, m = n, 3 * n
    elif operator == "softmax":
        f, m = 5 * n, 2 * n
    elif operator == "layernorm":
        f, m = 7 * n, 2 * n + 2 * cols
    else:
        f, m = 2 * n * n_out, n + cols * n_out + rows * n_out
    return f, m * itemsize


def least_time(flops, n_bytes, peak, bandwidth):
    c, m = flops / peak, n_bytes / bandwidth
    if c > m:
        return c, "compute"
    return m, "memory"
