def inject(model, targets, wrap):
    for p in model.parameters():
        p.requires_grad = False

    def walk(module):
        for name, child in list(module.named_children()):
            if name in targets and isinstance(child, nn.Linear):
                setattr(module, name, wrap(child))
            else:
                walk(child)

    walk(model)
    return model


def adapter_state(model):
    import copy

    return copy.deepcopy({name: p.data for name, p in model.named_parameters() if name.split(".")[-1][:5] == "lora_"})


def load_adapter(model, state):
    own = dict(model.named_parameters())
    wanted = [name for name in own if own[name].requires_grad]
    if sorted(wanted) != sorted(state) or any(own[name].shape != state[name].shape for name in wanted):
        raise ValueError("another model's adapter")
    model.load_state_dict(state, strict=False)
