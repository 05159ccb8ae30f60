# hint: Nothing came back for this family
def param_count(config) -> int:
    """The number of parameters of a Llama, GPT-2 or T5 with a language-model head."""
    if config.model_type == "llama":
        width = config.hidden_size
        heads = 2 * (config.num_attention_heads + config.num_key_value_heads) * config.head_dim
        layer = width * heads + 3 * width * config.intermediate_size + 2 * width
        ends = 1 if config.tie_word_embeddings else 2
        return config.num_hidden_layers * layer + width + ends * config.vocab_size * width
