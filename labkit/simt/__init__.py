"""CUDA C++ without a GPU: compiled by NVRTC, executed from its PTX on the CPU, every thread a lane of an array.

    kernels = compile_cuda(source)
    profile = kernels["transpose"].launch((10, 7), (32, 8), x, y, 200, 300)
    profile.shared_wavefronts

A launch works on torch tensors in place. It gives what a profiler counts, by source line, and finds what CUDA leaves
undefined: accesses out of bounds, races, barriers that not all threads reach. It tells no times.

Not executed, and refused by name and line: textures and surfaces, malloc, calls by pointer (virtual functions among
them), what an sm_80 does not have (TMA, wgmma, clusters, mbarriers), and matrix products of other shapes than m16n8k16.
Headers that need libcu++ (cooperative_groups) are not installed. Races are looked for in shared memory, and in global
memory between blocks; two threads of one block that race in global memory are not noticed. Equal values that threads
store at one place by one instruction are no race here (`shadow.py` says why). Caches are not simulated.
"""

from labkit.simt.compiling import Kernel, Kernels, compile_cuda
from labkit.simt.diagnostics import CudaCompileError, Diagnostic
from labkit.simt.faults import Fault, LaunchFault
from labkit.simt.nvrtc import NvrtcMissing
from labkit.simt.profile import KernelProfile
from labkit.simt.sources import SourceRefused
from labkit.simt.tokens import PtxSyntaxError
from labkit.simt.tracking import track_cuda
from labkit.simt.values import Unsupported
from labkit.simt.watching import WarpAccess

__all__ = [
    "CudaCompileError",
    "Diagnostic",
    "Fault",
    "Kernel",
    "KernelProfile",
    "Kernels",
    "LaunchFault",
    "NvrtcMissing",
    "PtxSyntaxError",
    "SourceRefused",
    "Unsupported",
    "WarpAccess",
    "compile_cuda",
    "track_cuda",
]
