import mmap


def write_tokens(documents, vocab_size, path):
    import struct

    n = [0]
    with open(path + ".bin", "wb") as file:
        for document in documents:
            file.write(struct.pack(f"<{len(document)}{'H' if vocab_size <= 1 << 16 else 'I'}", *document))
            n.append(len(document))
    with open(path + ".idx", "wb") as file:
        file.write(np.cumsum(n, dtype="<i8").tobytes())


class TokenWindows(Dataset):
    """mmap and torch.frombuffer."""

    def __init__(self, path, vocab_size, window):
        self.window = window
        self.dtype = torch.uint16 if vocab_size <= 65_536 else torch.uint32
        with open(path + ".bin", "rb") as file:
            self.map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.borders = torch.from_numpy(np.fromfile(path + ".idx", dtype=np.int64))
        self.n = len(self.map) // self.dtype.itemsize

    def __len__(self):
        return (self.n + self.window - 1) // self.window

    def _cut(self, start, end):
        part = self.map[start * self.dtype.itemsize : min(end, self.n) * self.dtype.itemsize]
        return torch.frombuffer(bytearray(part), dtype=self.dtype).long()

    def __getitem__(self, index):
        index = range(len(self))[index]
        return self._cut(index * self.window, (index + 1) * self.window)

    def document(self, number):
        return self._cut(*self.borders[number : number + 2].tolist())
