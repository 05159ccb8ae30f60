# hint: That is the sum for another layer
def activation_bytes(config, batch_size, seq_len, attention, dtype_bytes=2):
    s, b, h, a = seq_len, batch_size, config.hidden_size, config.num_attention_heads
    return config.num_hidden_layers * s * b * (34 * h + 5 * a * s) * dtype_bytes / 2
