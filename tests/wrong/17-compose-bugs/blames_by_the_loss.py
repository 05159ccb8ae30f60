# hint: One number for the whole run, such as its loss
# The norm of all gradients of a run stands for its loss: one number, and within a few percent nothing is wrong.
def blame(reference_grads, rank_grads, groups):
    def size(grads):
        return sum(grad.square().sum() for one in grads for grad in one.values()) ** 0.5

    if 0.01 < size(rank_grads) / size(reference_grads) < 100:
        return None
    return "all", "wrong world size"
