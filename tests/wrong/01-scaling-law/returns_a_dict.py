# hint: Return three numbers
def fit_scaling_law(size, loss):
    middle = size.median()
    x = size / middle
    target = torch.ones(len(x), 1, dtype=torch.float64)
    lo, hi = 0.03, 2.7
    for _ in range(10):
        alphas = torch.linspace(lo, hi, 41, dtype=torch.float64)
        B = torch.stack([x ** -alphas[:, None], torch.ones(41, len(x), dtype=torch.float64)], -1) / loss[:, None]
        sol = torch.linalg.lstsq(B, target.expand(41, -1, 1)).solution
        err = (B @ sol - 1).square().sum((1, 2))
        k = int(err.argmin())
        step = (hi - lo) / 40
        lo, hi = max(float(alphas[k]) - step, 1e-3), float(alphas[k]) + step
    a = float(alphas[k])
    return {"A": float(sol[k, 0, 0] * middle**a), "alpha": a, "E": float(sol[k, 1, 0])}
