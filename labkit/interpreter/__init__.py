"""Triton on a CPU, made right and fast: small patches of its own interpreter, for Triton 3.6 to 3.9.

`enable()` puts them in place; `changed()` says which of the functions they stand on are not those they were written
for. The CPU needs Linux (Triton has wheels for nothing else); where there is a GPU, nothing is patched unless both are
asked for.
"""

from labkit.interpreter.beside import on_gpu
from labkit.interpreter.canary import changed
from labkit.interpreter.switch import TritonMissing, enable, enabled, enabled_beside_gpu

__all__ = ["TritonMissing", "changed", "enable", "enabled", "enabled_beside_gpu", "on_gpu"]
