# hint: An open file has one position
def write_tokens(documents, vocab_size, path):
    dtype = np.uint16 if vocab_size <= 2**16 else np.uint32
    borders = [0]
    with open(path + ".bin", "wb") as file:
        for document in documents:
            np.array(document, dtype=dtype).tofile(file)
            borders.append(borders[-1] + len(document))
    np.array(borders, dtype=np.int64).tofile(path + ".idx")


class TokenWindows(Dataset):
    def __init__(self, path, vocab_size, window):
        self.dtype = np.dtype(np.uint16 if vocab_size <= 2**16 else np.uint32)
        self.file = open(path + ".bin", "rb")
        self.borders = np.memmap(path + ".idx", dtype=np.int64, mode="r")
        self.window = window

    def __len__(self):
        return -(-int(self.borders[-1]) // self.window)

    def _read(self, start, n):
        self.file.seek(start * self.dtype.itemsize)
        data = self.file.read(n * self.dtype.itemsize)
        return torch.from_numpy(np.frombuffer(data, self.dtype).astype(np.int64))

    def __getitem__(self, index):
        if index >= len(self):
            raise IndexError(index)
        return self._read(index * self.window, self.window)

    def document(self, number):
        start, end = self.borders[number : number + 2].tolist()
        return self._read(start, end - start)
