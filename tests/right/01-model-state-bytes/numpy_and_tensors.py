import numpy as np


def model_state_bytes(shapes, recipe, optimizer):
    n = int(np.sum([np.prod(s) for s in shapes]))
    w, m, g = dict(fp32=(4, 0, 4), amp=(4, 0, 4), fp16_master=(2, 4, 2), huggingface=(2, 4, 4), bf16=(2, 0, 2))[recipe]
    rows_and_columns = np.int64(0)
    for s in shapes:
        rows_and_columns += np.prod(s) if len(s) == 1 else np.prod(s) // s[-1] + np.prod(s) // s[-2]
    count = {"sgd": 0, "momentum": 1, "adamw": 2, "adam8bit": 2, "adafactor": 0, "adafactor_momentum": 1}[optimizer] * n
    if "adafactor" in optimizer:
        count = count + rows_and_columns
    each = 1 if optimizer.endswith("8bit") else max(m, w)
    return {
        "optimizer": torch.tensor(int(count) * each),
        "gradients": np.int64(g * n),
        "master": m * n,
        "weights": torch.tensor(w * n),
    }


def gb_and_gib(n_bytes):
    return n_bytes / 1e9, n_bytes / 2**30
