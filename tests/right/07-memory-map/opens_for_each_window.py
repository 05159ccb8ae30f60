import array
import os


def write_tokens(documents, vocab_size, path):
    """By Python's own arrays."""
    with open(f"{path}.bin", "wb") as tokens, open(f"{path}.idx", "wb") as borders:
        end = 0
        array.array("q", [end]).tofile(borders)
        for document in documents:
            array.array("H" if vocab_size <= 65_536 else "I", document).tofile(tokens)
            end += len(document)
            array.array("q", [end]).tofile(borders)


class TokenWindows:
    """Opens the file anew for each window, and asks it for its size."""

    def __init__(self, path, vocab_size, window):
        self.path, self.window = path, window
        self.code, self.size = ("H", 2) if vocab_size <= 65_536 else ("I", 4)

    def _read(self, ending, code, size, start, n):
        with open(self.path + ending, "rb") as file:
            file.seek(start * size)
            return array.array(code, file.read(n * size)).tolist()

    def __len__(self):
        return -(-os.path.getsize(self.path + ".bin") // self.size // self.window)

    def __getitem__(self, index):
        if not 0 <= index < len(self):
            raise IndexError(f"window {index} of {len(self)}")
        return torch.tensor(self._read(".bin", self.code, self.size, index * self.window, self.window))

    def document(self, number):
        start, end = self._read(".idx", "q", 8, number, 2)
        return torch.tensor(self._read(".bin", self.code, self.size, start, end - start))
