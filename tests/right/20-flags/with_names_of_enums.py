# Other spellings of the arguments, some of their defaults said aloud, and counts in place of all and any.
from transformers.training_args import OptimizerNames


def arguments(feature, samples, fits, every):
    parts = next(n for n in range(1, samples + 1) if samples % n == 0 and samples // n <= fits)
    chosen = dict(
        per_device_train_batch_size=samples,
        gradient_accumulation_steps=1,
        optim=OptimizerNames.ADAMW_TORCH,
        learning_rate=3e-4,
        seed=7,
    )
    if feature == "gradient accumulation":
        chosen.update(per_device_train_batch_size=samples // parts, gradient_accumulation_steps=parts)
    elif feature == "gradient checkpointing":
        chosen.update(gradient_checkpointing=True, gradient_checkpointing_kwargs={"use_reentrant": False})
    elif feature == "mixed precision":
        chosen["bf16"] = 1
    elif feature == "torch_empty_cache_steps":
        chosen[feature] = every
    elif feature == "optimizer choice":
        chosen["optim"] = OptimizerNames.ADAFACTOR
    elif feature == "data preloading":
        chosen.update(dataloader_num_workers=2, dataloader_pin_memory=True, dataloader_persistent_workers=True)
    elif feature == "torch.compile":
        chosen.update(torch_compile=True, torch_compile_backend="inductor")
    elif feature in ("fp16", "tf32"):
        chosen[feature] = True
    return chosen


def row(feature, sizes):
    n = len(sizes)
    fast = sum(
        after["samples"] * before["seconds"] >= 1.05 * before["samples"] * after["seconds"] for before, after in sizes
    )
    small = sum(before["peak_bytes"] >= 1.05 * after["peak_bytes"] for before, after in sizes)
    sign = {0: "❌", n: "✅"}
    return {"memory": sign.get(small, "❌✅"), "speed": sign.get(fast, "❌✅")}
