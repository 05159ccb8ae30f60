# hint: The model's states are missing
def largest_batch(needs, card_bytes):
    if needs["gradients"] + needs["update"] + needs["weights"] + needs["optimizer"] > card_bytes:
        return 0
    return card_bytes // (needs["activations_per_sequence"] + needs["loss_per_sequence"])
