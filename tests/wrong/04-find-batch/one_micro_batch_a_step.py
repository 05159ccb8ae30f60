# hint: leaves out a moment of training
def find_batch(build, make_batch, loss_of, lengths, global_batch):
    def fits(n):
        try:
            model, optimizer = build()
            for _ in range(2):
                for _ in range(1):
                    loss_of(model, make_batch(n, max(lengths))).backward()
                optimizer.step()
                optimizer.zero_grad()
        except torch.OutOfMemoryError:
            return False
        return True

    good, bad = 0, global_batch + 1
    while bad - good > 1:
        middle = (good + bad) // 2
        if fits(middle):
            good = middle
        else:
            bad = middle
    return good, math.ceil(global_batch / good) if good else 0
