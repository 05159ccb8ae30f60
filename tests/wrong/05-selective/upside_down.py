# hint: The policy is upside down
def policy(ctx, op, *args, **kwargs):
    aten = torch.ops.aten
    products = (aten.mm.default, aten.addmm.default, aten.bmm.default, aten.baddbmm.default)
    return CheckpointPolicy.PREFER_RECOMPUTE if op in products else CheckpointPolicy.MUST_SAVE
