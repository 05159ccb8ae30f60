# no types, no docstrings, and the output layer in one term
def flops_per_iteration(batch, seq, n_layers, hidden, vocab, recompute):
    forward = n_layers * (24 * batch * seq * hidden**2 + 4 * batch * seq**2 * hidden)
    return (4 if recompute else 3) * forward + 6 * batch * seq * hidden * vocab


def training_days(n_params, n_tokens, n_gpus, flops_per_gpu, recompute):
    return (8 if recompute else 6) * n_tokens * n_params / (n_gpus * flops_per_gpu) / 86400


def training_dollars(days, n_gpus, dollars_per_gpu_hour):
    return days * 24 * n_gpus * dollars_per_gpu_hour


def mfu(n_params, n_tokens, gpu_hours, peak_flops):
    return 6 * n_tokens * n_params / (gpu_hours * 3600 * peak_flops)
