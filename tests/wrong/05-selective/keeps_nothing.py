# hint: Nothing is kept
def policy(ctx, op, *args, **kwargs):
    return CheckpointPolicy.PREFER_RECOMPUTE
