# hint: Return an int that is 0 or more
def largest_batch(needs, card_bytes):
    free = card_bytes - needs["weights"] - needs["optimizer"]
    if needs["gradients"] + needs["update"] > free:
        return -1
    return free // (needs["activations_per_sequence"] + needs["loss_per_sequence"])
