import torch


def sharded_init(build, seed, rank, world_size):
    """Put an empty tensor in the place of each meta parameter, and a meta one back."""
    with torch.device("meta"):
        model = build()
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    shards = {}
    torch.manual_seed(seed)
    for module in model.modules():
        own = dict(module._parameters)
        if not any(one is not None for one in own.values()):
            continue
        for name, parameter in own.items():
            if parameter is not None:
                setattr(module, name, torch.nn.Parameter(torch.empty(parameter.shape)))
        module.reset_parameters()
        for name, parameter in own.items():
            if parameter is not None:
                parts = getattr(module, name).detach().view(-1).tensor_split(
                    [i * -(-parameter.numel() // world_size) for i in range(1, world_size)]
                )
                shards[names[id(parameter)]] = parts[rank].clone()
                setattr(module, name, parameter)
    return shards
