# hint: The dtype is wrong
def activation_bytes(config, batch_size, seq_len, attention, dtype_bytes=2):
    w = dtype_bytes
    h, f, V = config.hidden_size, config.intermediate_size, config.vocab_size
    a, k, d = config.num_attention_heads, config.num_key_value_heads, config.head_dim
    norm = (4 + 2 * w) * h
    if attention == "sdpa":
        attn = w * d * (2 * a + 2 * k)
    else:
        attn = 4 * w * a * d + 4 * a * seq_len + (w * a * seq_len if w != 4 else 0)
    layer = 2 * norm + attn + 4 * w * f
    end = norm + 4 * V
    return batch_size * seq_len * (config.num_hidden_layers * layer + end) // w
