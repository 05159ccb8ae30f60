# Dynamo translates NumPy's calls into PyTorch's, so they fuse as well.
import numpy as np


def fused(x, y, scale):
    f, y = (x * torch.sigmoid(x)).numpy(), y.numpy()
    g = np.where(y < 0, np.float32(0.1) * y, y)
    return torch.from_numpy(np.minimum(np.sqrt(f * f + g * g), np.float32(4.0))) * scale
