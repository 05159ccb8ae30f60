import bisect


def find_batch(build, make_batch, loss_of, lengths, global_batch):
    model, optimizer = build()
    loss_of(model, make_batch(1, 1)).backward()
    optimizer.step()

    class Fails:
        def __len__(self):
            return global_batch

        def __getitem__(self, i):
            failed = False
            try:
                for _ in range(2):
                    loss_of(model, make_batch(i + 1, max(lengths))).backward()
                optimizer.step()
            except torch.cuda.OutOfMemoryError:
                failed = True
            optimizer.zero_grad()
            return failed

    n = bisect.bisect_left(Fails(), True)
    return [n, (global_batch + n - 1) // n] if n else [0, 0]
