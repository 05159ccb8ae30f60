def policy(ctx, op, *args, **kwargs):
    return "mm" in str(op)
