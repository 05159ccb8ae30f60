# hint: in every branch
P = {torch.ops.aten.mm.default, torch.ops.aten.bmm.default, torch.ops.aten.addmm.default, torch.ops.aten.baddbmm.default}
def policy(ctx, op, *args, **kwargs):
    if op in P:
        return CheckpointPolicy.MUST_SAVE
    CheckpointPolicy.PREFER_RECOMPUTE
