# hint: The score matrix is missing
def activation_bytes(
    config, batch_size: int, seq_len: int, attention: str, dtype_bytes: int = 2
) -> int:
    """Bytes that a Llama's forward pass keeps for the backward pass; attention is "sdpa" or "eager"."""
    tokens, heads = batch_size * seq_len, config.num_attention_heads
    queries, keys = heads * config.head_dim, config.num_key_value_heads * config.head_dim
    norm = (4 + 2 * dtype_bytes) * config.hidden_size + 4

    if attention == "sdpa":  # queries, keys, values, result; one number a row and head
        attended = dtype_bytes * (2 * queries + 2 * keys) + 4 * heads
    else:  # keys and values repeated; softmax in float32, and its cast
        casts = 4 if dtype_bytes == 4 else 4 + dtype_bytes
        attended = dtype_bytes * 4 * queries 
    mlp = 4 * dtype_bytes * config.intermediate_size

    layer = 2 * norm + attended + mlp
    end = norm + 4 * config.vocab_size + 8  # the loss keeps the labels, too
    return tokens * (config.num_hidden_layers * layer + end) + 2 * dtype_bytes * seq_len * config.head_dim
