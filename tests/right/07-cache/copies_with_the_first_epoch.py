class CachedImages(Dataset):
    """Bytes in one place, views of them for images."""

    def __init__(self, files, decode, augment, max_bytes):
        self.files, self.decode, self.augment = files, decode, augment
        self.memory = torch.empty(max_bytes, dtype=torch.uint8)
        self.views, self.end = {}, 0

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        if index not in self.views:
            image = self.decode(self.files[index])
            end = self.end + image.numel()
            if end > len(self.memory):
                return self.augment(image)
            self.views[index] = self.memory[self.end : end].view(image.shape)
            self.views[index].copy_(image)
            self.end = end
        return self.augment(self.views[index].clone())


def train_resident(images, model, device, n_epochs, batch_size):
    model, total, on_device = model.to(device), torch.zeros((), device=device), []
    for batch in images.pin_memory().split(batch_size):
        on_device.append(batch.to(device, non_blocking=True))
        total += model(on_device[-1] / 255)
    for _ in range(n_epochs - 1):
        for batch in on_device:
            total += model(batch / 255)
    return total.item()


def pays_from(fill_ms, resident_ms, loader_ms, data_bytes, free_bytes):
    gain_ms = loader_ms - resident_ms
    return 1 + fill_ms // gain_ms if gain_ms > 0 and data_bytes <= free_bytes else None
