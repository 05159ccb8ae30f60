# Lists every tensor of each moment as (numbers, bytes of each), with the first block's backward pass as a fourth moment.
from math import ceil


def predict(config):
    c = config
    h, w, n = c.width, c.bytes_per_number, c.size.n_parameters
    rows = c.micro_batch * c.seq_len
    states = [] if c.states_on_host else [(n, 4), (n, 4)]
    gradients = [(n, w)] if c.n_micro > 1 else []

    def block(below):
        above = [] if gradients else [(12 * h * h * (c.n_layers - 1 - below), w)]
        kept = [(rows * h, w)] * (below if c.recompute else 16 * below)
        return [*gradients, *above, *kept, *[(rows * h, w)] * 22, (4 * h * h, w), (c.vocab * h, w)]

    big = h * max(4 * h, c.vocab)
    copies = ([4] * 4 + [4] * (w == 2)) if c.states_on_host else [4, 4]
    moments = (
        [*gradients, *[(rows * h, w)] * (c.n_layers * (1 if c.recompute else 16) + 2), *[(rows * c.vocab, 4)] * 3],
        block(c.n_layers - 1),
        block(0),
        [(n, w), *((big, size) for size in copies)],
    )
    peak = max(sum(a * b for a, b in [(n, w), *states, *moment]) for moment in moments)
    sent = 2 * (c.n_cards - 1) * n * w / c.n_cards
    return {
        "tokens": int(rows * c.n_micro * c.n_cards * c.n_steps),
        "moved_bytes": ceil(c.n_steps * sent + (c.n_steps * 16 * n if c.states_on_host else 0)),
        "peak_bytes": int(peak),
    }
