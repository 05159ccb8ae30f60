# hint: The step of the optimizer does not fit this card
def largest_batch(needs: Mapping[str, int], card_bytes: int) -> int:
    """The most sequences with which a training step stays within card_bytes."""
    free = card_bytes - needs["weights"] - needs["optimizer"]
    return max(free // (needs["activations_per_sequence"] + needs["loss_per_sequence"]), 0)
