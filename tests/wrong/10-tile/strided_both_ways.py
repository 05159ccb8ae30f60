# hint: Loads are strided
tiled_transpose = r"""
__global__ void tiled_transpose(const float* x, float* y, int rows, int cols) {
  __shared__ float tile[32][32];
  int left = blockIdx.x * 32, top = blockIdx.y * 32;
  for (int i = threadIdx.y; i < 32; i += 8)
    if (top + threadIdx.x < rows && left + i < cols)
      tile[threadIdx.x][i] = x[(top + threadIdx.x) * cols + left + i];
  __syncthreads();
  for (int i = threadIdx.y; i < 32; i += 8)
    if (left + threadIdx.x < cols && top + i < rows)
      y[(left + threadIdx.x) * rows + top + i] = tile[i][threadIdx.x];
}
"""
