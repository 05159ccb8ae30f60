def train_epoch(model, optimizer, loader, n_accumulate, max_norm, sum_over_ranks):
    optimizer.zero_grad()
    seen = torch.zeros((), dtype=torch.int64)
    for i, (x, y) in enumerate(loader, 1):
        loss = nn.CrossEntropyLoss(reduction="none")(model(x).transpose(1, 2), y)
        loss.sum().backward()
        seen += (y != -100).sum().cpu()
        if i % n_accumulate == 0 or i == len(loader):
            n = sum_over_ranks(seen)
            for p in model.parameters():
                p.grad.copy_(sum_over_ranks(p.grad / n))
            norm = torch.cat([p.grad.flatten() for p in model.parameters()]).norm()
            if norm > max_norm:
                for p in model.parameters():
                    p.grad *= max_norm / norm
            optimizer.step()
            optimizer.zero_grad(set_to_none=False)
            seen.zero_()
