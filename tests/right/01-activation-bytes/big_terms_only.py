def activation_bytes(config, batch_size, seq_len, attention, dtype_bytes=2):
    h, f, w = config.hidden_size, config.intermediate_size, dtype_bytes
    q, kv = config.num_attention_heads * config.head_dim, config.num_key_value_heads * config.head_dim
    per_token = 2 * (4 + 2 * w) * h + 4 * w * f
    if attention == "eager":
        per_token += 4 * w * q + {2: 6, 4: 4}[w] * config.num_attention_heads * seq_len
    else:
        per_token += 2 * w * (q + kv)
    ends = (4 + 2 * w) * h + 4 * config.vocab_size
    return float(batch_size * seq_len) * (config.num_hidden_layers * per_token + ends)
