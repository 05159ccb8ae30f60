def trial(build, make_batch, loss_of, n, longest):
    model, optimizer = build()
    for _ in range(3):
        optimizer.zero_grad()
        for _ in range(3):
            batch = make_batch(n, longest)
            loss = loss_of(model, batch)
            (loss / 3).backward()
        optimizer.step()


def find_batch(build, make_batch, loss_of, lengths, global_batch):
    longest = sorted(lengths)[-1]
    tried = {}

    def fits(n):
        if n not in tried:
            try:
                trial(build, make_batch, loss_of, n, longest)
                tried[n] = True
            except RuntimeError as error:
                if "out of memory" not in str(error):
                    raise
                tried[n] = False
        return tried[n]

    if not fits(1):
        return 0, 0
    n, step = 1, 1
    while 2 * n < global_batch and fits(2 * n):
        n *= 2
    step = n
    while step:
        if n + step <= global_batch and fits(n + step):
            n += step
        step //= 2
    return n, -(-global_batch // n)
