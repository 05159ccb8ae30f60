# hint: has 64 places
histogram = r"""
__global__ void histogram(const int* x, int* counts, int n) {
  __shared__ int mine[64];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  mine[t] = 0;
  __syncthreads();
  if (i < n) atomicAdd(&mine[x[i]], 1);
  __syncthreads();
  if (t < 64) atomicAdd(&counts[t], mine[t]);
}
"""
