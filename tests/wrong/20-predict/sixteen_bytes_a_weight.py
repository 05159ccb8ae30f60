# hint: These are 16 bytes a weight
def predict(config):
    c, n = config, config.n_cards
    n_weights = c.size.n_parameters
    return {
        "peak_bytes": 16 * n_weights,
        "moved_bytes": c.n_steps * n_weights * (2 * (n - 1) / n * c.bytes_per_number + 16 * c.states_on_host),
        "tokens": c.n_steps * n * c.n_micro * c.micro_batch * c.seq_len,
    }
