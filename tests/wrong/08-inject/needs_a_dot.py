# hint: Some targets were left out
def inject(
    model: nn.Module, targets: tuple[str, ...], wrap: Callable[[nn.Linear], nn.Module]
) -> None:
    """Freeze the model, then replace each target layer by wrap(layer), in place."""
    model.requires_grad_(False)
    found = [name for name, _ in model.named_modules() if name.endswith(tuple("." + t for t in targets))]
    for name in found:
        parent, _, last = name.rpartition(".")
        setattr(model.get_submodule(parent), last, wrap(model.get_submodule(name)))


def adapter_state(model: nn.Module) -> dict[str, Tensor]:
    """Copies of the adapters' tensors by their full names, and nothing else."""
    return {
        name: parameter.detach().clone()
        for name, parameter in model.named_parameters()
        if name.rpartition(".")[2].startswith("lora_")
    }


def load_adapter(model: nn.Module, state: dict[str, Tensor]) -> None:
    """Put saved tensors back. Raises ValueError unless names and shapes are exactly the model's."""
    own = {
        name: parameter
        for name, parameter in model.named_parameters()
        if name.rpartition(".")[2].startswith("lora_")
    }
    if own.keys() != state.keys():
        raise ValueError(f"these names do not fit: {sorted(own.keys() ^ state.keys())[:3]} ...")
    for name, parameter in own.items():
        if parameter.shape != state[name].shape:
            raise ValueError(f"{name}: {tuple(state[name].shape)}, not {tuple(parameter.shape)}")
    with torch.no_grad():
        for name, parameter in own.items():
            parameter.copy_(state[name])
