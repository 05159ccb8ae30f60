# Lists all passes by sorting them, and then deals them out by what is kept.
def interleaved(rank, n_ranks, n_chunks, n_microbatches):
    passes = [(i // n_ranks, chunk, i) for chunk in range(n_chunks) for i in range(n_microbatches)]
    forward = [("F", chunk, i) for _, chunk, i in sorted(passes)]
    backward = [("B", n_chunks - 1 - chunk, i) for _, chunk, i in sorted(passes)]
    most = min(len(passes), 2 * (n_ranks - rank - 1) + (n_chunks - 1) * n_ranks + 1)
    order, kept = [], 0
    while backward:
        if forward and kept < most:
            order.append(forward.pop(0))
            kept += 1
        else:
            order.append(backward.pop(0))
            kept -= 1
    return order
