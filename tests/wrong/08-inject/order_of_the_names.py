# hint: The same names in another order are refused
def inject(model, targets, wrap):
    model.requires_grad_(False)
    for name in [n for n, _ in model.named_modules() if n.rpartition(".")[2] in targets]:
        parent, _, last = name.rpartition(".")
        parent = model.get_submodule(parent)
        setattr(parent, last, wrap(getattr(parent, last)))
def adapter_state(model):
    return {n: p.detach().clone() for n, p in model.named_parameters() if n.rpartition(".")[2].startswith("lora_")}
def load_adapter(model, state):
    own = {n: p for n, p in model.named_parameters() if n.rpartition(".")[2].startswith("lora_")}
    if list(own) != list(state) or any(own[n].shape != state[n].shape for n in own): raise ValueError("no")
    with torch.no_grad():
        for n in own: own[n].copy_(state[n])
