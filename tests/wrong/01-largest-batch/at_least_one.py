# hint: Not even one sequence fits this card
def largest_batch(needs, card_bytes):
    free = card_bytes - needs["weights"] - needs["optimizer"]
    if free < needs["gradients"] + needs["update"]:
        return 0
    return max(1, free // (needs["activations_per_sequence"] + needs["loss_per_sequence"]))
