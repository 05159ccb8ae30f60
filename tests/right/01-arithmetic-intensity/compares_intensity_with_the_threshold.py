# goes by intensity, and returns tensors and a list
def peak_flops(n_sms, fma_per_clock, clock_hz):
    return torch.tensor([n_sms, fma_per_clock, 2, clock_hz], dtype=torch.float64).prod()


def operator_cost(operator, rows, cols, n_out, itemsize):
    if operator == "add":
        flops, elements = rows * cols, 3 * rows * cols
    elif operator == "softmax":
        flops, elements = 5 * rows * cols, 2 * rows * cols
    elif operator == "layernorm":
        flops, elements = 7 * rows * cols, 2 * rows * cols + 2 * cols
    else:
        flops, elements = 2 * rows * cols * n_out, rows * cols + cols * n_out + rows * n_out
    return [float(flops), float(elements) * itemsize]


def least_time(flops, n_bytes, peak, bandwidth):
    intensity = flops / n_bytes
    if intensity < peak / bandwidth:
        return flops / (intensity * bandwidth), "memory"
    return flops / peak, "compute"
