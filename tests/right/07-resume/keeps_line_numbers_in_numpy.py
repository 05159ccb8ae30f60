import numpy as np


class ResumableStream:
    """A generator of NumPy's, whose state JSON holds as it is; what is taken is counted over all shards."""

    def __init__(self, store, names, buffer_size, seed=0):
        self.store, self.buffer_size = store, buffer_size
        self.rng = np.random.Generator(np.random.PCG64(seed))
        self.state = {"names": [names[i] for i in self.rng.permutation(len(names))], "rest": None, "buffer": []}

    def _draw(self):
        buffer = self.state["buffer"]
        at = int(self.rng.integers(len(buffer)))
        buffer[at], buffer[-1] = buffer[-1], buffer[at]
        return buffer.pop()

    def __iter__(self):
        state = self.state
        while state["names"]:
            lines = self.store.read(state["names"][0]).decode().split()
            while lines[state["rest"] or 0 :]:
                state["buffer"].append(lines[state["rest"] or 0])
                state["rest"] = (state["rest"] or 0) + 1
                if state["rest"] == len(lines):
                    state["names"].pop(0)
                    state["rest"] = 0
                    lines = []
                if len(state["buffer"]) >= self.buffer_size:
                    yield self._draw()
        while state["buffer"]:
            yield self._draw()

    def state_dict(self):
        import copy

        return {"stream": copy.deepcopy(self.state), "rng": self.rng.bit_generator.state}

    def load_state_dict(self, state):
        self.state = state["stream"]
        self.rng.bit_generator.state = state["rng"]
