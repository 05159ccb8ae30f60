def inject(model, targets, wrap):
    print("injecting into", len(list(model.modules())), "modules")
    model.eval().requires_grad_(False)
    modules = dict(model.named_modules())
    for name in reversed(list(modules)):
        if any(name == t or name.endswith("." + t) for t in targets):
            parent = modules[name[: name.rfind(".")]] if "." in name else model
            parent._modules[name.split(".")[-1]] = wrap(modules[name])


def adapter_state(model):
    return {k: v.clone().cpu() for k, v in model.state_dict().items() if ".lora_" in k}


def load_adapter(model, state):
    mine = adapter_state(model)
    if {k: v.shape for k, v in mine.items()} != {k: v.shape for k, v in state.items()}:
        raise ValueError("this adapter belongs to another model")
    for name, value in state.items():
        model.get_parameter(name).data = value.clone().to(model.get_parameter(name).device)
