import copy

import numpy as np


class ResumableStream:
    """A generator of NumPy's, whose state JSON holds as it is; files are dealt in blocks, and dropped when taken."""

    def __init__(self, store, names, buffer_size, seed=0, number=0, n_streams=1):
        self.store, self.buffer_size = store, buffer_size
        order = [names[i] for i in np.random.default_rng(seed).permutation(len(names))]
        first, last = (len(order) * end // n_streams for end in (number, number + 1))
        self.rng = np.random.Generator(np.random.PCG64([seed, number]))
        self.state = {"left": [{"name": name, "from": 0} for name in order[first:last]], "buffer": []}

    def _draw(self):
        buffer = self.state["buffer"]
        at = int(self.rng.integers(len(buffer)))
        buffer[at], buffer[-1] = buffer[-1], buffer[at]
        return buffer.pop()

    def __iter__(self):
        state = self.state
        while state["left"]:
            file = state["left"][0]
            lines = self.store.read(file["name"]).decode().split()
            while file["from"] < len(lines):
                state["buffer"].append(lines[file["from"]])
                file["from"] += 1
                if file["from"] == len(lines):
                    state["left"].pop(0)
                if len(state["buffer"]) >= self.buffer_size:
                    yield self._draw()
        while state["buffer"]:
            yield self._draw()

    def state_dict(self):
        return {"stream": copy.deepcopy(self.state), "rng": self.rng.bit_generator.state}

    def load_state_dict(self, state):
        self.state = copy.deepcopy(state["stream"])
        self.rng.bit_generator.state = state["rng"]


def deal_again(states, n_streams):
    new = [{"left": [], "buffer": []} for _ in range(n_streams)]
    for key in ("left", "buffer"):
        for at, one in enumerate(one for state in states for one in state["stream"][key]):
            new[at % n_streams][key].append(one)
    return [{"stream": one, "rng": np.random.PCG64(at).state} for at, one in enumerate(new)]
