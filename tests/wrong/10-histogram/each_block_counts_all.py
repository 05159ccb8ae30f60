# hint: Every value was counted once by each block
histogram = r"""
__global__ void histogram(const int* x, int* counts, int n) {
  __shared__ int mine[64];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  if (t < 64) mine[t] = 0;
  __syncthreads();
  for (int k = t; k < n; k += blockDim.x) atomicAdd(&mine[x[k]], 1);
  __syncthreads();
  if (t < 64) atomicAdd(&counts[t], mine[t]);
}
"""
