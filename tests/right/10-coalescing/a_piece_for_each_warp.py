# Warps have pieces of their own, of whole sectors; lanes within them take turns.
axpy = r"""
__global__ void axpy(float a, const float* x, float* y, int n) {
  int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  int n_warps = gridDim.x * blockDim.x / 32;
  int rounds = (n + 32 * n_warps - 1) / (32 * n_warps);
  for (int k = 0; k < rounds; k++) {
    int i = (warp * rounds + k) * 32 + lane;
    if (i < n) y[i] += a * x[i];
  }
}
"""
