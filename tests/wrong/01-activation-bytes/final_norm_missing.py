# hint: The norm after the last layer is missing
def activation_bytes(config, batch_size, seq_len, attention, dtype_bytes=2):
    h, ff, w, s = config.hidden_size, config.intermediate_size, dtype_bytes, seq_len
    q, kv = config.num_attention_heads * config.head_dim, config.num_key_value_heads * config.head_dim
    a, V, norm = config.num_attention_heads, config.vocab_size, (4 + 2 * w) * h
    fused, eager = 2 * w * q + 2 * w * kv, 4 * w * q + (6 if w == 2 else 4) * a * s
    layer = 2 * norm + 4 * w * ff + (fused if attention == "sdpa" else eager)
    return batch_size * s * (config.num_hidden_layers * layer + 4 * V)
