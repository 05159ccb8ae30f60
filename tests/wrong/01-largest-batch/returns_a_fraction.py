# hint: Return an int that is 0 or more
def largest_batch(needs: Mapping[str, int], card_bytes: int) -> int:
    """The most sequences with which a training step stays within card_bytes."""
    free = card_bytes - needs["weights"] - needs["optimizer"]
    if needs["gradients"] + needs["update"] > free:
        return 0
    return free / (needs["activations_per_sequence"] + needs["loss_per_sequence"])
