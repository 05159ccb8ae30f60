DTYPE = {
    "fp32": (torch.float32, None, torch.float32),
    "amp": (torch.float32, None, torch.float32),
    "fp16_master": (torch.float16, torch.float32, torch.float16),
    "huggingface": (torch.float16, torch.float32, torch.float32),
    "bf16": (torch.bfloat16, None, torch.bfloat16),
}


def model_state_bytes(shapes, recipe, optimizer):
    def total(dtype, shapes=shapes):
        return 0 if dtype is None else sum(torch.empty(s, dtype=dtype, device="meta").nbytes for s in shapes)

    weights, master, gradients = DTYPE[recipe]
    state = master or weights
    factors = [part for s in shapes for part in ((s[:-1], s[:-2] + s[-1:]) if len(s) > 1 else (s,))]
    remembered = {
        "sgd": lambda: 0,
        "momentum": lambda: total(state),
        "adamw": lambda: 2 * total(state),
        "adam8bit": lambda: 2 * total(torch.uint8),
        "adafactor": lambda: total(state, factors),
        "adafactor_momentum": lambda: total(state, factors) + total(state),
    }
    return dict(
        weights=total(weights), master=total(master), gradients=total(gradients), optimizer=remembered[optimizer]()
    )


def gb_and_gib(n_bytes):
    return [n_bytes * 1e-9, n_bytes / 1024**3]
