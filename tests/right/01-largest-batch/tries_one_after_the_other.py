def peak(needs, batch):
    states = needs["weights"] + needs["optimizer"]
    per_sequence = needs["activations_per_sequence"] + needs["loss_per_sequence"]
    return states + max(batch * per_sequence, needs["gradients"] + needs["update"])


def largest_batch(needs, card_bytes):
    batch = 0
    while peak(needs, batch + 1) <= card_bytes:
        batch += 1
    return batch
