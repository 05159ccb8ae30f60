# hint: or there twice
PER = {"fp32": (4, 0, 4), "amp": (6, 0, 4), "fp16_master": (2, 4, 2), "huggingface": (2, 4, 4), "bf16": (2, 0, 2)}


def model_state_bytes(shapes, recipe, optimizer):
    n = sum(math.prod(s) for s in shapes)
    w, m, g = PER[recipe]
    st = m or w
    fac = sum(math.prod(s) if len(s) < 2 else math.prod(s[:-1]) + math.prod(s[:-2]) * s[-1] for s in shapes)
    o = {
        "sgd": 0,
        "momentum": n * st,
        "adamw": 2 * n * st,
        "adam8bit": 2 * n,
        "adafactor": fac * st,
        "adafactor_momentum": (fac + n) * st,
    }[optimizer]
    return {"weights": w * n, "master": m * n, "gradients": g * n, "optimizer": o}


def gb_and_gib(n_bytes):
    return n_bytes / 10**9, n_bytes / 2**30
