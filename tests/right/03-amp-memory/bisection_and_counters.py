def bytes_after_forward(widths, n_rows, *, training, autocast):
    P = sum(w.numel() for w in torch.nn.ParameterList(torch.empty(b, a, device="meta") for a, b in zip(widths, widths[1:])))
    per_parameter = {(0, 0): 4, (0, 1): 6, (1, 0): 16, (1, 1): 18}[training, autocast]
    counters = 4 * (len(widths) - 1) if training else 0
    rows = {False: 4 * widths[0], True: (6 if training else 4) * widths[0]}[autocast]
    made = widths[-1] + (2 * sum(widths[1:-1]) if training else 0)
    return torch.tensor(per_parameter * P + counters + n_rows * (rows + made * (4 >> autocast)))


def break_even_rows(widths):
    low, high = 0, 2**40
    while high - low > 1:
        n = (low + high) // 2
        saves = bytes_after_forward(widths, n, training=True, autocast=False) > bytes_after_forward(
            widths, n, training=True, autocast=True
        )
        low, high = (low, n) if saves else (n, high)
    return high
