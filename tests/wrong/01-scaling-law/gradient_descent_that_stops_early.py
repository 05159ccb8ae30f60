# hint: Put your law back into the table
def fit_scaling_law(size, loss):
    numbers = torch.tensor([1.0, 0.5, 1.0], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([numbers], lr=1e-2)
    for _ in range(50):
        optimizer.zero_grad()
        made = numbers[2] + numbers[0] * (size / 1e6) ** -numbers[1]
        (made / loss - 1).square().mean().backward()
        optimizer.step()
    constant, exponent, irreducible = numbers.tolist()
    return constant * 1e6**exponent, exponent, irreducible
