# hint: begin in the middle of a sector
axpy = r"""
__global__ void axpy(float a, const float* x, float* y, int n) {
  int per_block = (n + gridDim.x - 1) / gridDim.x;
  int first = blockIdx.x * per_block;
  for (int i = first + threadIdx.x; i < min(first + per_block, n); i += blockDim.x) y[i] = a * x[i] + y[i];
}
"""
