# hint: The activations are missing
def largest_batch(needs, card_bytes):
    free = card_bytes - needs["weights"] - needs["optimizer"]
    if free < needs["gradients"] + needs["update"]:
        return 0
    return max(0, free // (needs["loss_per_sequence"]))
