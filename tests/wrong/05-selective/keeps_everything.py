# hint: Everything is kept
def policy(ctx, op, *args, **kwargs):
    return CheckpointPolicy.MUST_SAVE
