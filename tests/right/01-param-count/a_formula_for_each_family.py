# a formula for each family of models
def param_count(config) -> int:
    if config.model_type == "llama":
        h, d = config.hidden_size, config.head_dim
        attn = 2 * h * d * config.num_attention_heads + 2 * h * d * config.num_key_value_heads
        mlp = 3 * h * config.intermediate_size
        V = config.vocab_size * h
        return config.num_hidden_layers * (attn + mlp + 2 * h) + h + (V if config.tie_word_embeddings else 2 * V)
    if config.model_type == "gpt2":
        h = config.n_embd
        inner = config.n_inner or 4 * h
        lay = h * 3 * h + 3 * h + h * h + h + h * inner + inner + inner * h + h + 4 * h
        return config.n_layer * lay + 2 * h + config.n_positions * h + config.vocab_size * h
    dm, inner = config.d_model, config.num_heads * config.d_kv
    a = 4 * dm * inner
    m = (3 if config.is_gated_act else 2) * dm * config.d_ff
    return (
        config.num_layers * (a + m + 2 * dm)
        + config.num_decoder_layers * (2 * a + m + 3 * dm)
        + 2 * (config.relative_attention_num_buckets * config.num_heads + dm)
        + config.vocab_size * dm
    )
