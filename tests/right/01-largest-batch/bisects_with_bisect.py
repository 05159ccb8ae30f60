import bisect


def largest_batch(needs, card_bytes):
    states = needs["weights"] + needs["optimizer"]
    per_sequence = needs["activations_per_sequence"] + needs["loss_per_sequence"]
    later = states + needs["gradients"] + needs["update"]

    def fits(batch):
        return max(states + batch * per_sequence, later) <= card_bytes

    return bisect.bisect_left(range(1, 10**6), True, key=lambda batch: not fits(batch))
