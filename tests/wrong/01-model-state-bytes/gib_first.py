# hint: GB and GiB are mixed up
def model_state_bytes(
    shapes: Sequence[tuple[int, ...]], recipe: str, optimizer: str
) -> dict[str, int]:
    """Bytes of "weights", "master", "gradients" and "optimizer" for parameters of these shapes."""
    weights, master, gradients = {
        "fp32": (4, 0, 4),
        "amp": (4, 0, 4),
        "fp16_master": (2, 4, 2),
        "huggingface": (2, 4, 4),
        "bf16": (2, 0, 2),
    }[recipe]
    n = sum(math.prod(shape) for shape in shapes)
    factored = sum(
        math.prod(s) if len(s) < 2 else math.prod(s[:-1]) + math.prod(s[:-2]) * s[-1]
        for s in shapes
    )
    remembered = {
        "sgd": 0,
        "momentum": n,
        "adamw": 2 * n,
        "adam8bit": 2 * n,
        "adafactor": factored,
        "adafactor_momentum": factored + n,
    }[optimizer]
    state_bytes = 1 if optimizer == "adam8bit" else master or weights
    return {
        "weights": weights * n,
        "master": master * n,
        "gradients": gradients * n,
        "optimizer": state_bytes * remembered,
    }


def gb_and_gib(n_bytes: float) -> tuple[float, float]:
    """An amount in GB (10**9 bytes) and in GiB (2**30 bytes)."""
    return n_bytes / 2**30, n_bytes / 10**9
