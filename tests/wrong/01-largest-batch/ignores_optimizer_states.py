# hint: The optimizer's states are missing
def largest_batch(needs, card_bytes):
    free = card_bytes - needs["weights"]
    return max(free // (needs["activations_per_sequence"] + needs["loss_per_sequence"]), 0)
