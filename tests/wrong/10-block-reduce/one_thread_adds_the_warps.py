# hint: one thread reads the sums of the warps
block_sum = r"""
__global__ void block_sum(const float* x, float* out, int n) {
  __shared__ float s[1024];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  s[t] = i < n ? x[i] : 0;
  __syncthreads();
  for (int d = blockDim.x / 2; d > 0; d /= 2) {
    if (t < d) s[t] += s[t + d];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = s[0];
}
"""

shuffle_sum = r"""
__global__ void shuffle_sum(const float* x, float* out, int n) {
  __shared__ float of_warp[32];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  float sum = i < n ? x[i] : 0;
  for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(0xffffffff, sum, d);
  if (t % 32 == 0) of_warp[t / 32] = sum;
  __syncthreads();
  if (t == 0) {
    for (int w = 1; w < blockDim.x / 32; ++w) sum += of_warp[w];
    out[blockIdx.x] = sum;
  }
}
"""
