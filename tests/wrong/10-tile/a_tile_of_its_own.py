# hint: an array without `__shared__`
tiled_transpose = r"""
__global__ void tiled_transpose(const float* x, float* y, int rows, int cols) {
  float tile[32][32];
  int left = blockIdx.x * 32, top = blockIdx.y * 32;
  for (int i = threadIdx.y; i < 32; i += 8)
    if (top + i < rows && left + threadIdx.x < cols) tile[i][threadIdx.x] = x[(top + i) * cols + left + threadIdx.x];
  __syncthreads();
  for (int i = threadIdx.y; i < 32; i += 8)
    if (left + i < cols && top + threadIdx.x < rows) y[(left + i) * rows + top + threadIdx.x] = tile[threadIdx.x][i];
}
"""
