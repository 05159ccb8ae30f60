import numpy as np


def rms(x, dim):
    values = x.to(torch.float32).numpy()
    return torch.from_numpy(np.sqrt(np.mean(np.square(values), axis=dim))).to(x.dtype)
