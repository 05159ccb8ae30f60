# hint: One size after the other
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

    good = 0
    while good < global_batch and fits(good + 1):
        good += 1
    return good, math.ceil(global_batch / good) if good else 0
