def train(DataLoader, dataset, model, device, n_epochs, batch_size, n_cores):
    """A generator that has the next copy under way while the model works, and pins by itself."""

    def on_device(loader):
        ahead = None
        for images in loader:
            arrived, ahead = ahead, images.pin_memory().to(device, non_blocking=True)
            if arrived is not None:
                yield arrived.float().div_(255)
        yield ahead.float().div_(255)

    loader = DataLoader(dataset, batch_size, num_workers=n_cores, persistent_workers=True)
    model.to(device)
    losses = [model(x) for _ in range(n_epochs) for x in on_device(loader)]
    return torch.stack(losses).sum().item()
