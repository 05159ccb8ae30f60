# hint: Only the first quarter was stored
fused = r"""
__device__ float combine(float x, float y) { return fmaxf(x * x, 3 * y + 1); }

__global__ void fused(const float* x, const float* y, float* z, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) z[i] = combine(x[i], y[i]);
}
"""
