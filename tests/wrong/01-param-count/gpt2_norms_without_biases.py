# hint: GPT-2's LayerNorms have a weight and a bias each
def param_count(config) -> int:
    """The number of parameters of a Llama, GPT-2 or T5 with a language-model head."""
    if config.model_type == "llama":
        width = config.hidden_size
        heads = 2 * (config.num_attention_heads + config.num_key_value_heads) * config.head_dim
        layer = width * heads + 3 * width * config.intermediate_size + 2 * width
        ends = 1 if config.tie_word_embeddings else 2
        return config.num_hidden_layers * layer + width + ends * config.vocab_size * width
    if config.model_type == "gpt2":
        width = config.n_embd
        inner = 4 * width if config.n_inner is None else config.n_inner
        attention = width * 3 * width + 3 * width + width * width + width
        mlp = width * inner + inner + inner * width + width
        embeddings = (config.vocab_size + config.n_positions) * width
        return config.n_layer * (attention + mlp + 2 * width) + width + embeddings
    width = config.d_model
    attention = 4 * width * config.num_heads * config.d_kv
    mlp = (3 if config.is_gated_act else 2) * width * config.d_ff
    encoder = config.num_layers * (attention + mlp + 2 * width)
    decoder = config.num_decoder_layers * (2 * attention + mlp + 3 * width)
    once_a_stack = config.relative_attention_num_buckets * config.num_heads + width
    return encoder + decoder + 2 * once_a_stack + config.vocab_size * width
