# Counters of its own for each warp, added up before they leave the block.
histogram = r"""
__global__ void histogram(const int* x, int* counts, int n) {
  __shared__ int mine[32][64];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t, n_warps = blockDim.x / 32;
  for (int k = t; k < 64 * n_warps; k += blockDim.x) mine[k / 64][k % 64] = 0;
  __syncthreads();
  if (i < n) atomicAdd(&mine[t / 32][x[i]], 1);
  __syncthreads();
  for (int bin = t; bin < 64; bin += blockDim.x) {
    int sum = 0;
    for (int w = 0; w < n_warps; w++) sum += mine[w][bin];
    if (sum) atomicAdd(&counts[bin], sum);
  }
}
"""
