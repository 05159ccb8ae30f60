# integers where it can, one-element tensors elsewhere
def flops_per_iteration(batch, seq, n_layers, hidden, vocab, recompute):
    tokens = batch * seq
    weights = 3 * hidden**2 + hidden**2 + 2 * 4 * hidden**2
    layer = 2 * tokens * weights + 2 * (2 * tokens * seq * hidden)
    head = 2 * tokens * hidden * vocab
    return sum([layer * (3 + int(recompute))] * n_layers) + 3 * head


def training_days(n_params, n_tokens, n_gpus, flops_per_gpu, recompute):
    seconds = torch.tensor(n_params, dtype=torch.float64) * n_tokens * (6 + 2 * recompute) / flops_per_gpu / n_gpus
    return seconds / 60 / 60 / 24


training_dollars = lambda days, n_gpus, price: torch.tensor([days * 24.0 * n_gpus * price], dtype=torch.float64)


def mfu(n_params, n_tokens, gpu_hours, peak_flops):
    achieved = n_params * n_tokens * 6 / (gpu_hours * 60 * 60)
    return achieved / peak_flops
