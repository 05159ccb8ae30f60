# hint: A thread reads past the end
histogram = r"""
__global__ void histogram(const int* x, int* counts, int n) {
  __shared__ int mine[64];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  if (t < 64) mine[t] = 0;
  __syncthreads();
  atomicAdd(&mine[x[i]], 1);
  __syncthreads();
  if (t < 64) atomicAdd(&counts[t], mine[t]);
}
"""
