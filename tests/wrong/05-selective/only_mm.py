# hint: The product addmm is recomputed
def policy(ctx, op, *args, **kwargs):
    return op == torch.ops.aten.mm.default or op == torch.ops.aten.bmm.default
