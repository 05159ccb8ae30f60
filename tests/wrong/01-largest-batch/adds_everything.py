# hint: gradients and activations do not have their peaks together
def largest_batch(needs, card_bytes):
    free = card_bytes - needs["weights"] - needs["optimizer"] - needs["gradients"]
    return max(free // (needs["activations_per_sequence"] + needs["loss_per_sequence"]), 0)
