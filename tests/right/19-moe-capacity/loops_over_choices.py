# Loops with a dictionary, whole numbers for rounding up, and one_hot for the shares.
def capacity(n_tokens, n_experts, k, factor):
    per_mille = round(1000 * factor)
    return -(-per_mille * n_tokens * k // (1000 * n_experts))


def dispatch(logits, k, places):
    order = logits.argsort(dim=-1, descending=True)[:, :k]
    free = {expert: places for expert in range(logits.shape[1])}
    kept = torch.zeros(len(logits), k, dtype=torch.bool)
    for choice in range(k):
        for token, expert in enumerate(order[:, choice].tolist()):
            if free[expert]:
                free[expert] -= 1
                kept[token, choice] = True
    return order, kept


def balancing_loss(logits, k):
    chosen = torch.nn.functional.one_hot(logits.topk(k).indices, logits.shape[1]).sum(1).float()
    return logits.shape[1] * torch.dot(chosen.mean(0), torch.softmax(logits, dim=1).mean(0))
