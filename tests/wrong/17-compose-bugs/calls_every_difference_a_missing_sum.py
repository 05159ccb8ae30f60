# hint: Not every difference is a missing sum
def blame(reference_grads, rank_grads, groups):
    for name in reversed(reference_grads[0]):
        for right, got in zip(reference_grads, rank_grads):
            if (got[name] - right[name]).norm() > 1e-8 * right[name].norm():
                return name, "not summed"
    return None
