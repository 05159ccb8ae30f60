def inject(model, targets, wrap):
    for p in model.parameters(): p.requires_grad_(False)
    def walk(module):
        for name, child in list(module.named_children()):
            if name in targets: module.register_module(name, wrap(child))
            else: walk(child)
    walk(model)
def adapter_state(model):
    from collections import OrderedDict
    out = OrderedDict()
    for prefix, module in model.named_modules():
        for name, p in module.named_parameters(prefix=prefix, recurse=False):
            if name.rpartition(".")[2].startswith("lora_"):
                out[name] = torch.empty_like(p).copy_(p.detach())
    return out
def load_adapter(model, state):
    before = adapter_state(model)
    try:
        if set(before) != set(state): raise KeyError("names")
        for name, p in model.named_parameters():
            if name in state:
                if p.shape != state[name].shape: raise IndexError("shape")
                p.data.copy_(state[name])
    except Exception as error:
        for name, value in before.items():
            model.get_parameter(name).data.copy_(value)
        raise ValueError(str(error)) from error
