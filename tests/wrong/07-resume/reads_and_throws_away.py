# hint: reads from the start and throws away
class ResumableStream:
    def __init__(self, store, names, buffer_size, seed=0, number=0, n_streams=1):
        self.store, self.buffer_size, self.seed = store, buffer_size, seed
        self.names = random.Random(seed).sample(names, len(names))[number::n_streams]
        self.n_seen = 0

    def __iter__(self):
        skip = self.n_seen
        for number, line in enumerate(self._lines()):
            if number >= skip:
                self.n_seen += 1
                yield line

    def _lines(self):
        rng, buffer = random.Random(self.seed), []
        for name in self.names:
            for line in self.store.read(name).decode().splitlines():
                buffer.append(line)
                if len(buffer) >= self.buffer_size:
                    yield buffer.pop(rng.randrange(len(buffer)))
        rng.shuffle(buffer)
        yield from buffer

    def state_dict(self):
        return {"n_seen": self.n_seen, "names": self.names}

    def load_state_dict(self, state):
        self.n_seen, self.names = state["n_seen"], state["names"]


def deal_again(states, n_streams):
    names = [name for state in states for name in state["names"]]
    return [{"n_seen": 0, "names": names[number::n_streams]} for number in range(n_streams)]
