import numpy as np


def param_count(config):
    def linear(m, n, bias):
        return np.int64(m * n + (n if bias else 0))

    kind = config.model_type
    if kind == "llama":
        h = config.hidden_size
        q, kv = config.num_attention_heads * config.head_dim, config.num_key_value_heads * config.head_dim
        shapes = [(h, q), (h, kv), (h, kv), (q, h)] + 2 * [(h, config.intermediate_size)] + [(config.intermediate_size, h)]
        total = config.num_hidden_layers * (sum(linear(*s, False) for s in shapes) + 2 * h) + h
        return total + linear(config.vocab_size, h, False) * (2 - config.tie_word_embeddings)
    if kind == "gpt2":
        d = config.n_embd
        inner = config.n_inner or 4 * d
        layer = linear(d, 3 * d, True) + linear(d, d, True) + linear(d, inner, True) + linear(inner, d, True) + 4 * d
        return config.n_layer * layer + 2 * d + config.vocab_size * d + config.n_positions * d
    d, inner = config.d_model, config.num_heads * config.d_kv
    attention = 3 * linear(d, inner, False) + linear(inner, d, False) + d
    mlp = (2 + bool(config.is_gated_act)) * linear(d, config.d_ff, False) + d
    stacks = config.num_layers * (attention + mlp) + config.num_decoder_layers * (2 * attention + mlp) + 2 * d
    return stacks + 2 * config.relative_attention_num_buckets * config.num_heads + config.vocab_size * d
