# hint: A new model with the saved adapter does not compute
def inject(
    model: nn.Module, targets: tuple[str, ...], wrap: Callable[[nn.Linear], nn.Module]
) -> None:
    """Freeze the model, then replace each target layer by wrap(layer), in place."""
    model.requires_grad_(False)
    found = [name for name, _ in model.named_modules() if name.rpartition(".")[2] in targets]
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


def load_adapter(model, state):
    own = {n: p for n, p in model.named_parameters() if n.rpartition(".")[2].startswith("lora_")}
    if own.keys() != state.keys() or any(own[n].shape != state[n].shape for n in own):
        raise ValueError("does not fit")
    for name in own:
        own[name] = state[name]
