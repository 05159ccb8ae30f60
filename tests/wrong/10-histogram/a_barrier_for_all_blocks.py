# hint: All blocks add to the same `counts`
histogram = r"""
__global__ void histogram(const int* x, int* counts, int n) {
  __shared__ int mine[64];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  if (t < 64) mine[t] = 0;
  __syncthreads();
  if (i < n) atomicAdd(&mine[x[i]], 1);
  __threadfence();
  __syncthreads();
  if (t < 64) counts[t] = counts[t] + mine[t];
}
"""
