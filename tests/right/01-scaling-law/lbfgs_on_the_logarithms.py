# an optimizer of PyTorch's, on well-scaled numbers, returning tensors
def fit_scaling_law(size, loss):
    x = size.log() - size.log().mean()
    best = None
    for start in (0.15, 0.6):
        p = torch.tensor([0.0, start, loss.min().log().item() - 0.2], dtype=torch.float64, requires_grad=True)
        optimizer = torch.optim.LBFGS([p], max_iter=60, tolerance_grad=1e-12, line_search_fn="strong_wolfe")

        def error():
            optimizer.zero_grad()
            made = p[2].exp() + (p[0] - p[1] * x).exp()
            total = 1e4 * (made / loss - 1).square().mean()
            total.backward()
            return total

        optimizer.step(error)
        total = error().item()
        if best is None or total < best[0]:
            best = total, p.detach().clone()
    log_middle, exponent, log_irreducible = best[1]
    return (log_middle + exponent * size.log().mean()).exp(), exponent, log_irreducible.exp()
