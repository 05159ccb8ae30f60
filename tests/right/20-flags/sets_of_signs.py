# Puts what is asked for into one table of functions, and joins the signs that occur.
FLAGS = {
    "gradient checkpointing": lambda every: {"gradient_checkpointing": True},
    "mixed precision": lambda every: {"bf16": True},
    "torch_empty_cache_steps": lambda every: {"torch_empty_cache_steps": every},
    "optimizer choice": lambda every: {"optim": "adafactor"},
    "data preloading": lambda every: {"dataloader_num_workers": 2},
    "torch.compile": lambda every: {"torch_compile": True},
}


def arguments(feature, samples, fits, every):
    micro = samples
    if feature == "gradient accumulation":
        while micro > fits or samples % micro:
            micro -= 1
    more = FLAGS[feature](every) if feature in FLAGS else {feature: True} if feature in ("fp16", "tf32") else {}
    return {"per_device_train_batch_size": micro, "gradient_accumulation_steps": samples // micro} | more


def row(feature, sizes):
    def signs(better):
        return "".join(sorted({"✅" if one else "❌" for one in better}, key="❌✅".index))

    def per_second(run):
        return run["samples"] / run["seconds"]

    return {
        "speed": signs(per_second(after) / per_second(before) >= 1.05 for before, after in sizes),
        "memory": signs(before["peak_bytes"] / after["peak_bytes"] >= 1.05 for before, after in sizes),
    }
