# hint: doubling or halving
def find_batch(build, make_batch, loss_of, lengths, global_batch):
    def fits(n):
        try:
            model, optimizer = build()
            for _ in range(2):
                for _ in range(2):
                    loss_of(model, make_batch(n, max(lengths))).backward()
                optimizer.step()
                optimizer.zero_grad()
        except torch.OutOfMemoryError:
            return False
        return True

    good, n = 0, 1
    while n <= global_batch and fits(n):
        good, n = n, 2 * n
    return good, math.ceil(global_batch / good) if good else 0
