# hint: More than the shards and two layers existed at once
import torch


def sharded_init(build, seed, rank, world_size):
    torch.manual_seed(seed)
    model = build()
    shards = {}
    for name, parameter in model.named_parameters():
        size = -(-parameter.numel() // world_size)
        shards[name] = parameter.detach().flatten()[rank * size : (rank + 1) * size].clone()
    return shards
