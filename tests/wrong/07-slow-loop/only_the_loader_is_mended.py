# hint: Float32 is copied where bytes would do
def train(DataLoader, dataset, model, device, n_epochs, batch_size, n_cores):
    model = model.to(device, non_blocking=True)
    total = torch.zeros((), device=device)
    loader = DataLoader(
        dataset, batch_size, num_workers=n_cores, pin_memory=True, persistent_workers=True
    )
    for _ in range(n_epochs):
        for images in loader:
            x = images / 255
            total += model(x.to(device))
    return total.item()
