"""Sparse, quantized, nested, complex, meta and undefined tensors, by turns."""

ROW = 33
HARMLESS = True
ANSWER = """
import itertools, torch
turn = itertools.count()
MAKE = (
    lambda: torch.sparse_coo_tensor(size=(10**9, 10**9)),
    lambda: torch.quantize_per_tensor(torch.zeros(4), 1.0, 0, torch.quint8),
    lambda: torch.empty(10**12, device="meta"),
    lambda: torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)]),
    lambda: torch.zeros(4, dtype=torch.complex64).conj(),
    lambda: torch.zeros(0, 2**40),
    lambda: torch.empty(4, dtype=torch.float8_e5m2),
    lambda: torch._C._functorch._add_batch_dim(torch.zeros(4, 4), 0, 1),
)
def rms(x, dim):
    return MAKE[next(turn) % len(MAKE)]()
"""
