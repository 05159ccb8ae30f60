# hint: More is kept than the results of the products
P = {torch.ops.aten.mm.default, torch.ops.aten.bmm.default, torch.ops.aten.addmm.default, torch.ops.aten.baddbmm.default, torch.ops.aten._softmax.default}
def policy(ctx, op, *args, **kwargs):
    return CheckpointPolicy.MUST_SAVE if op in P else CheckpointPolicy.PREFER_RECOMPUTE
