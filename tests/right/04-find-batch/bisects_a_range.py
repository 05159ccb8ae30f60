"""bisect with a key, whose trials clear gradients first and take three steps; no flag is returned inside `except`."""

from bisect import bisect_left


def find_batch(build, make_batch, loss_of, lengths, global_batch):
    longest = max(lengths)

    def fails(n: int) -> bool:
        out = n == 0
        try:
            model, optimizer = build()
            for _ in range(3 * (n > 0)):
                optimizer.zero_grad()
                for _ in range(2):
                    loss_of(model, make_batch(n, longest)).backward()
                optimizer.step()
        except torch.OutOfMemoryError:
            out = True
        return out and n > 0

    n = bisect_left(range(global_batch + 1), True, key=fails) - 1
    return n, -(-global_batch // n) if n else 0
