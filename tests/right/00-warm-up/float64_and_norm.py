import math


def rms(x, dim):
    norm = torch.linalg.vector_norm(x.to(torch.float64), ord=2, dim=dim)
    return (norm / math.sqrt(x.size(dim))).to(x.dtype)
