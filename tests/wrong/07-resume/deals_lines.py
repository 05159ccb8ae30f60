# hint: Deal whole shards
class ResumableStream:
    def __init__(self, store, names, buffer_size, seed=0, number=0, n_streams=1):
        self.store, self.buffer_size, self.buffer = store, buffer_size, []
        order = random.Random(seed).sample(names, len(names))
        self.shards = [[name, number, n_streams] for name in order]
        self.random = random.Random(f"{seed}, {number}")

    def __iter__(self):
        while self.shards:
            name, start, step = self.shards[0]
            for line in self.store.read(name).decode().splitlines()[start::step]:
                self.shards[0][1] += step
                self.buffer.append(line)
                if len(self.buffer) >= self.buffer_size:
                    yield self.buffer.pop(self.random.randrange(len(self.buffer)))
            del self.shards[0]
        while self.buffer:
            yield self.buffer.pop(self.random.randrange(len(self.buffer)))

    def state_dict(self):
        return {
            "shards": [list(shard) for shard in self.shards],
            "buffer": list(self.buffer),
            "random": self.random.getstate(),
        }

    def load_state_dict(self, state):
        version, numbers, gauss = state["random"]
        self.random.setstate((version, tuple(numbers), gauss))
        self.shards = [list(shard) for shard in state["shards"]]
        self.buffer = list(state["buffer"])


def deal_again(states, n_streams):
    shards = [shard for state in states for shard in state["shards"]]
    lines = [line for state in states for line in state["buffer"]]
    return [
        {
            "shards": shards[number::n_streams],
            "buffer": lines[number::n_streams],
            "random": random.Random(number).getstate(),
        }
        for number in range(n_streams)
    ]
