"""Lab 10: kernels that its notebook compares with the student's own."""

from __future__ import annotations

import importlib.util
import re

from labkit.meters.compiled.sass import disassembled

ALL_ELEMENTS = r"""
__global__ void scan(const float* x, float* y, int n) {
  __shared__ float sums[2048];
  int t = threadIdx.x, size = 8 * blockDim.x, start = blockIdx.x * size;
  for (int i = t; i < size; i += blockDim.x) sums[i] = start + i < n ? x[start + i] : 0;
  __syncthreads();
  for (int step = 1; step < size; step *= 2) {
    float left[8];
    for (int k = 0; k < 8; ++k) {
      int i = k * blockDim.x + t;
      left[k] = i >= step ? sums[i - step] : 0;
    }
    __syncthreads();
    for (int k = 0; k < 8; ++k) {
      int i = k * blockDim.x + t;
      if (i >= step) sums[i] += left[k];
    }
    __syncthreads();
  }
  for (int i = t; i < size; i += blockDim.x)
    if (start + i < n) y[start + i] = sums[i];
}
"""
TREE = r"""
__global__ void scan(const float* x, float* y, int n) {
  __shared__ float tree[2048];
  int t = threadIdx.x, size = 8 * blockDim.x, start = blockIdx.x * size;
  for (int i = t; i < size; i += blockDim.x) tree[i] = start + i < n ? x[start + i] : 0;
  for (int step = 1; step < size; step *= 2) {
    __syncthreads();
    for (int i = 2 * step * (t + 1) - 1; i < size; i += 2 * step * blockDim.x) tree[i] += tree[i - step];
  }
  for (int step = size / 2; step >= 1; step /= 2) {
    __syncthreads();
    for (int i = 2 * step * (t + 1) - 1 + step; i < size; i += 2 * step * blockDim.x) tree[i] += tree[i - step];
  }
  __syncthreads();
  for (int i = t; i < size; i += blockDim.x)
    if (start + i < n) y[start + i] = tree[i];
}
"""
SCANS = {"Hillis and Steele": ALL_ELEMENTS, "Blelloch": TREE}
"""Two classic prefix sums, of 8 elements a thread and at most 256 threads, as the exercise wants them."""
DIRECT_PRODUCT = r"""
__global__ void matmul(const float* a, const float* b, float* c, int m, int n, int k) {
  int col = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
  if (row >= m || col >= n) return;
  float sum = 0;
  for (int i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + col];
  c[row * n + col] = sum;
}
"""
"""A product in which every thread reads its row and its column from memory."""
SUMS = {
    "atomic_sum": r"""
__global__ void atomic_sum(const float* x, float* out, int n) {
  __shared__ float total;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x == 0) total = 0;
  __syncthreads();
  if (i < n) atomicAdd(&total, x[i]);
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = total;
}
""",
    "divergent_sum": r"""
__global__ void divergent_sum(const float* x, float* out, int n) {
  __shared__ float s[1024];
  unsigned t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  s[t] = 0;
  if (i < n) s[t] = x[i];
  for (unsigned d = 1; d < blockDim.x; d *= 2) {
    __syncthreads();
    if (t % (2 * d) == 0) s[t] = s[t] + s[t + d];
  }
  if (t == 0) out[blockIdx.x] = s[0];
}
""",
}
"""The sum of each block in two expensive ways: every lane updates one place; a tree whose threads lie far apart."""
OWN_BRANCH = r"""
__device__ unsigned hard(unsigned v) {  // 32 rounds of Marsaglia's xorshift: expensive, and the same for all
  for (int i = 0; i < 32; ++i) {
    v ^= v << 13;
    v ^= v >> 17;
    v ^= v << 5;
  }
  return v;
}

__global__ void mix(const int* x, int* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] < 0 ? hard(x[i]) : x[i];
}
"""
"""A kernel in which each thread takes the branch for its own element."""


def memory_instructions(cubin: bytes) -> list[str]:
    """The loads and stores of global memory in machine code; none where the disassembler is not there."""
    if importlib.util.find_spec("triton") is None:
        return []
    return [line for line in disassembled(cubin).splitlines() if re.search(r"\b(LDG|STG)\b", line)]


BROKEN_HISTOGRAM = r"""
__global__ void histogram(const int* x, int* counts, int n) {
  __shared__ int mine[64];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  if (t < 64) mine[t] = 0;
  if (i < n) {
    mine[x[i]]++;
    __syncthreads();
  }
  if (t < 64) counts[t] += mine[t];
}
"""
"""How often each of 64 values occurs, with four mistakes."""
