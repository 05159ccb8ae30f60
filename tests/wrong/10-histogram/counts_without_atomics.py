# hint: only atomicAdd does in one
histogram = r"""
__global__ void histogram(const int* x, int* counts, int n) {
  __shared__ int mine[64];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  if (t < 64) mine[t] = 0;
  __syncthreads();
  if (i < n) mine[x[i]]++;
  __syncthreads();
  if (t < 64) atomicAdd(&counts[t], mine[t]);
}
"""
