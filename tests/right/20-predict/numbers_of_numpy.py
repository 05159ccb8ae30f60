# Computes with numbers of numpy and returns them as they are.
import numpy as np


def predict(config):
    c = config
    n, w, h = np.float64(c.size.n_parameters), c.bytes_per_number, c.width
    rows = c.micro_batch * c.seq_len
    base = n * w * (1 + (c.n_micro > 1)) + 8 * n * (not c.states_on_host)
    per_block = {False: 16, True: 1}[c.recompute]
    loss = base + rows * (h * w * (c.n_layers * per_block + 2) + 12 * c.vocab)
    block = base + rows * h * w * ((c.n_layers - 1) * per_block + 22) + h * w * (4 * h + c.vocab)
    update = n * w * 2 + (n * 8 if not c.states_on_host else 0)
    update += h * max(4 * h, c.vocab) * ({2: 20, 4: 16}[w] if c.states_on_host else 8)
    ring = np.float64(2 - 2 / c.n_cards) * n * w
    return {
        "peak_bytes": np.max([loss, block, update]),
        "moved_bytes": c.n_steps * (ring + 16 * n * c.states_on_host),
        "tokens": np.int64(c.n_steps) * c.n_cards * c.n_micro * rows,
    }
