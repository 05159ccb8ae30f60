# hint: leave the `except` block
def find_batch(build, make_batch, loss_of, lengths, global_batch):
    def search(good, bad):
        if bad - good <= 1:
            return good
        n = (good + bad) // 2
        try:
            model, optimizer = build()
            for _ in range(2):
                for _ in range(2):
                    loss = loss_of(model, make_batch(n, max(lengths)))
                    loss.backward()
                optimizer.step()
                optimizer.zero_grad()
        except torch.OutOfMemoryError:
            return search(good, n)
        del model, optimizer, loss
        return search(n, bad)

    good = search(0, global_batch + 1)
    return good, math.ceil(global_batch / good) if good else 0
