import sys
import warnings


def rms(x, dim):
    print("x has shape", tuple(x.shape))
    print("this goes to stderr", file=sys.stderr)
    warnings.warn("a warning of the student's own")
    copy = x.clone().float()
    copy.mul_(copy)
    return copy.mean(dim).sqrt_().to(x.dtype)
