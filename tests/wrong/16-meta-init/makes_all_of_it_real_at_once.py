# hint: More than the shards and two layers existed at once
import torch


def sharded_init(build, seed, rank, world_size):
    with torch.device("meta"):
        model = build()
    model.to_empty(device="cpu")
    torch.manual_seed(seed)
    for module in model.modules():
        if hasattr(module, "reset_parameters"):
            module.reset_parameters()
    shards = {}
    for name, parameter in model.named_parameters():
        size = -(-parameter.numel() // world_size)
        shards[name] = parameter.detach().flatten()[rank * size : (rank + 1) * size].clone()
    return shards
