# hint: Rounds over all elements cost
scan = r"""
__global__ void scan(const float* x, float* y, int n) {
  __shared__ float sums[2048];
  int t = threadIdx.x, size = 8 * blockDim.x, start = blockIdx.x * size;
  for (int i = t; i < size; i += blockDim.x) sums[i] = start + i < n ? x[start + i] : 0;
  __syncthreads();
  for (int step = 1; step < size; step *= 2) {
    float left[8];
    for (int k = 0; k < 8; ++k) { int i = k * blockDim.x + t; left[k] = i >= step ? sums[i - step] : 0; }
    __syncthreads();
    for (int k = 0; k < 8; ++k) { int i = k * blockDim.x + t; if (i >= step) sums[i] += left[k]; }
    __syncthreads();
  }
  for (int i = t; i < size; i += blockDim.x) if (start + i < n) y[start + i] = sums[i];
}
"""
