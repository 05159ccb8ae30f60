# hint: costs a warp the same for one lane as for 32
mix = r"""
__device__ unsigned hard(unsigned v) {  // 32 rounds of Marsaglia's xorshift: expensive, and the same for all
  for (int i = 0; i < 32; ++i) {
    v ^= v << 13;
    v ^= v >> 17;
    v ^= v << 5;
  }
  return v;
}

__global__ void mix(const int* x, int* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] < 0 ? hard(x[i]) : x[i];
}
"""
