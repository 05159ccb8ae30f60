from torch import nn


def llama_layer(c):
    q, kv = c.num_attention_heads * c.head_dim, c.num_key_value_heads * c.head_dim
    h, f = c.hidden_size, c.intermediate_size
    widths = [(h, q), (h, kv), (h, kv), (q, h), (h, f), (h, f), (f, h)]
    return nn.ModuleList([nn.Linear(m, n, bias=False) for m, n in widths] + [nn.RMSNorm(h), nn.RMSNorm(h)])


def gpt2_layer(c):
    d, f = c.n_embd, c.n_inner or 4 * c.n_embd
    widths = [(d, 3 * d), (d, d), (d, f), (f, d)]
    return nn.ModuleList([nn.Linear(m, n) for m, n in widths] + [nn.LayerNorm(d), nn.LayerNorm(d)])


def t5_layer(c, decoder):
    d, i, f = c.d_model, c.num_heads * c.d_kv, c.d_ff
    attention = [(d, i), (d, i), (d, i), (i, d)]
    widths = attention * (1 + decoder) + [(d, f)] * (1 + c.is_gated_act) + [(f, d)]
    return nn.ModuleList([nn.Linear(m, n, bias=False) for m, n in widths] + [nn.RMSNorm(d)] * 0 + [nn.RMSNorm(d) for _ in range(2 + decoder)])


def param_count(config):
    c = config
    with torch.device("meta"):
        if c.model_type == "llama":
            parts = [llama_layer(c) for _ in range(c.num_hidden_layers)] + [nn.RMSNorm(c.hidden_size)]
            parts += [nn.Embedding(c.vocab_size, c.hidden_size)] * 1
            if not c.tie_word_embeddings:
                parts += [nn.Linear(c.hidden_size, c.vocab_size, bias=False)]
        elif c.model_type == "gpt2":
            parts = [gpt2_layer(c) for _ in range(c.n_layer)] + [nn.LayerNorm(c.n_embd)]
            parts += [nn.Embedding(c.vocab_size, c.n_embd), nn.Embedding(c.n_positions, c.n_embd)]
        else:
            parts = [t5_layer(c, 0) for _ in range(c.num_layers)] + [t5_layer(c, 1) for _ in range(c.num_decoder_layers)]
            parts += [nn.RMSNorm(c.d_model), nn.RMSNorm(c.d_model), nn.Embedding(c.vocab_size, c.d_model)]
            parts += [nn.Embedding(c.relative_attention_num_buckets, c.num_heads) for _ in range(2)]
    return sum(p.numel() for part in parts for p in part.parameters())
