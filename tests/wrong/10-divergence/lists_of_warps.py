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
  __shared__ int list[256];
  int t = threadIdx.x, lane = t % 32, first = t - lane, i = blockIdx.x * blockDim.x + t;
  int v = i < n ? x[i] : 0;
  unsigned hits = __ballot_sync(0xffffffff, v < 0);
  if (v < 0) list[first + __popc(hits & ((1u << lane) - 1))] = i;
  else if (i < n) y[i] = v;
  __syncwarp();
  if (lane < __popc(hits)) y[list[t]] = hard(x[list[t]]);
}
"""
