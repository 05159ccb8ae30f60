# Lane l of the first warp adds up places l, l + 32, ..., then a tree of 32; and the shuffles are butterflies.
block_sum = r"""
__global__ void block_sum(const float* x, float* out, int n) {
  __shared__ float s[1024];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  s[t] = i < n ? x[i] : 0;
  __syncthreads();
  if (t < 32) {
    for (int k = t + 32; k < blockDim.x; k += 32) s[t] += s[k];
    for (int d = 16; d > 0; d /= 2) {
      __syncwarp();
      if (t < d) s[t] += s[t + d];
    }
  }
  if (t == 0) out[blockIdx.x] = s[0];
}
"""

shuffle_sum = r"""
__global__ void shuffle_sum(const float* x, float* out, int n) {
  __shared__ float of_warp[32];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  float sum = i < n ? x[i] : 0;
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffff, sum, d);
  if (t % 32 == 0) of_warp[t / 32] = sum;
  __syncthreads();
  if (t < 32) {
    sum = t < blockDim.x / 32 ? of_warp[t] : 0;
    for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffff, sum, d);
    if (t == 0) out[blockIdx.x] = sum;
  }
}
"""
