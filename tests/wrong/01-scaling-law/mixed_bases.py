# hint: Two bases are mixed
import math


def fit_scaling_law(size, loss):
    middle = size.log().mean().exp()
    low, high = 0.01, 2.6
    for _ in range(8):
        exponents = torch.linspace(low, high, 41, dtype=torch.float64)
        terms = (size / middle) ** -exponents[:, None]
        basis = torch.stack([terms, torch.ones_like(terms)], -1) / loss[:, None]
        target = torch.ones_like(terms)[..., None]
        solved = torch.linalg.lstsq(basis, target).solution
        best = int((basis @ solved - target).square().sum((1, 2)).argmin())
        step = (high - low) / 40
        exponent = exponents[best].item()
        low, high = max(exponent - step, 1e-3), exponent + step
    constant, irreducible = solved[best, :, 0].tolist()
    constant *= middle.item() ** exponent
    return math.exp(math.log10(constant)), exponent, irreducible
