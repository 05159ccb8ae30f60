# math.floor is not needed: `//` of floats leaves no fraction, and 18.0 sequences are 18.
def largest_batch(needs, card_bytes):
    free = float(card_bytes) - needs["weights"] - needs["optimizer"]
    if needs["gradients"] + needs["update"] > free:
        return 0.0
    return free // (needs["activations_per_sequence"] + needs["loss_per_sequence"])
