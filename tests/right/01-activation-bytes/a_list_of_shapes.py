import math


def activation_bytes(config, batch_size, seq_len, attention, dtype_bytes=2):
    B, S, H, F = batch_size, seq_len, config.hidden_size, config.intermediate_size
    A, K, D, V = config.num_attention_heads, config.num_key_value_heads, config.head_dim, config.vocab_size
    w = dtype_bytes
    norm = [((B, S, H), 4), ((B, S, 1), 4), ((B, S, H), w), ((B, S, H), w)]
    fused = [((B, A, S, D), w), ((B, K, S, D), w), ((B, K, S, D), w), ((B, A, S), 4), ((B, S, A * D), w)]
    eager = 3 * [((B, A, S, D), w)] + [((B, S, A * D), w), ((B, A, S, S), 4)]
    if w != 4:
        eager.append(((B, A, S, S), w))
    layer = 2 * norm + (fused if attention == "sdpa" else eager) + 4 * [((B, S, F), w)]
    kept = config.num_hidden_layers * layer + norm + [((B, S, V), 4), ((B, S), 8), ((S, D), w), ((S, D), w)]
    return sum(math.prod(shape) * size for shape, size in kept)
