# hint: the temporary tensors of the update come when
def largest_batch(needs, card_bytes):
    free = card_bytes - needs["weights"] - needs["optimizer"] - needs["update"]
    if free < needs["gradients"]:
        return 0
    return max(0, free // (needs["activations_per_sequence"] + needs["loss_per_sequence"]))
