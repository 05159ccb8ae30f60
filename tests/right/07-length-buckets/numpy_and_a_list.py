import numpy as np


class LengthBatches:
    def __init__(self, lengths, batch_size, seed=0):
        self.lengths, self.batch_size, self.seed = np.array(lengths), batch_size, seed
        self.set_epoch(0)

    def set_epoch(self, epoch):
        self.state, self.start = {"epoch": epoch, "at": 0}, 0

    def __len__(self):
        return -(-len(self.lengths) // self.batch_size)

    def __iter__(self):
        return self.rest()

    def rest(self):
        rng = np.random.default_rng([self.seed, self.state["epoch"]])
        order = rng.permutation(len(self.lengths))
        size = self.batch_size
        n_whole = len(order) // size * size
        rest = [order[n_whole:]] if n_whole < len(order) else []
        whole = order[:n_whole]
        pools = [whole[at : at + 60 * size] for at in range(0, n_whole, 60 * size)]
        batches = [batch for pool in pools for batch in pool[self.lengths[pool].argsort()].reshape(-1, size)] + rest
        batches = [batches[at] for at in rng.permutation(len(batches))]
        self.state["at"], self.start = self.start, 0
        for batch in batches[self.state["at"] :]:
            self.state["at"] += 1
            yield batch

    def state_dict(self):
        return dict(self.state)

    def load_state_dict(self, state):
        self.state, self.start = dict(state), state["at"]


def collate(texts):
    longest = max(map(len, texts))
    result = {
        "input_ids": torch.zeros(len(texts), longest, dtype=torch.int64),
        "attention_mask": torch.zeros(len(texts), longest, dtype=torch.int64),
        "labels": torch.full((len(texts), longest), -100),
    }
    for row, text in enumerate(texts):
        result["input_ids"][row, : len(text)] = text
        result["attention_mask"][row, : len(text)] = 1
        result["labels"][row, : len(text)] = text
    return result
