def step_in_backward(model, make_optimizer, max_norm=None, accumulation_steps=1, scaler=None):
    for name, asked in {
        "max_norm": max_norm is not None,
        "accumulation_steps": accumulation_steps > 1,
        "scaler": scaler is not None,
    }.items():
        if asked:
            raise ValueError(f"{name} needs all gradients at the same time")
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = make_optimizer(trained)

    def hook(p):
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    for p in trained:
        p.register_post_accumulate_grad_hook(hook)
    return optimizer
