def train(DataLoader, dataset, model, device, n_epochs, batch_size, n_cores):
    options = {"num_workers": n_cores, "persistent_workers": True, "prefetch_factor": 4}
    loader = DataLoader(dataset, batch_size=batch_size, pin_memory=True, **options)
    model, losses = model.cuda(), []
    for epoch in range(n_epochs):
        for images in loader:
            x = images.cuda(non_blocking=True)
            losses.append(model(x.to(torch.float32) * (1 / 255)))
    return float(sum(losses))
