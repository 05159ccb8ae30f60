# Two sets of tiles in turn, so that one barrier a round is enough.
matmul = r"""
__global__ void matmul(const float* a, const float* b, float* c, int m, int n, int k) {
  __shared__ float ta[2][16][16], tb[2][16][16];
  const int x = threadIdx.x, y = threadIdx.y;
  const int col = blockIdx.x * blockDim.x + x, row = blockIdx.y * blockDim.y + y;
  float sum = 0.0f;
  for (int start = 0, set = 0; start < k; start += 16, set ^= 1) {
    ta[set][y][x] = row < m && start + x < k ? a[row * k + start + x] : 0.0f;
    tb[set][y][x] = col < n && start + y < k ? b[(start + y) * n + col] : 0.0f;
    __syncthreads();
    #pragma unroll
    for (int i = 0; i < 16; ++i) sum = fmaf(ta[set][y][i], tb[set][i][x], sum);
  }
  if (row < m && col < n) c[row * n + col] = sum;
}
"""
