# hint: only goes forward
def find_batch(build, make_batch, loss_of, lengths, global_batch):
    def fits(n):
        try:
            model, optimizer = build()
            with torch.enable_grad():
                loss = loss_of(model, make_batch(n, max(lengths)))
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
