# Blelloch's scan in shared memory: 2 n additions, up a tree and down again.
scan = r"""
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
  for (int i = t; i < size; i += blockDim.x) if (start + i < n) y[start + i] = tree[i];
}
"""
