# Places in the list by votes of the warps; the list is worked off in steps of a block.
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
  __shared__ int list[256], offsets[9];
  int t = threadIdx.x, lane = t % 32, warp = t / 32, i = blockIdx.x * blockDim.x + t;
  int v = i < n ? x[i] : 0;
  unsigned hits = __ballot_sync(0xffffffff, v < 0);
  if (lane == 0) offsets[warp + 1] = __popc(hits);
  if (t == 0) offsets[0] = 0;
  __syncthreads();
  if (t == 0) for (int w = 0; w < blockDim.x / 32; ++w) offsets[w + 1] += offsets[w];
  __syncthreads();
  if (v < 0) list[offsets[warp] + __popc(hits & ((1u << lane) - 1))] = i;
  else if (i < n) y[i] = v;
  __syncthreads();
  for (int k = t; k < offsets[blockDim.x / 32]; k += blockDim.x) y[list[k]] = hard(x[list[k]]);
}
"""
