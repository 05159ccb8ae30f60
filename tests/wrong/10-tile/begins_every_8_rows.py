# hint: so it begins at row 32
tiled_transpose = r"""
__global__ void tiled_transpose(const float* x, float* y, int rows, int cols) {
  __shared__ float tile[32][32];
  int left = blockIdx.x * 32, top = blockIdx.y * 32, from = blockIdx.y * blockDim.y;
  for (int i = threadIdx.y; i < 32; i += 8)
    if (from + i < rows && left + threadIdx.x < cols) tile[i][threadIdx.x] = x[(from + i) * cols + left + threadIdx.x];
  __syncthreads();
  for (int i = threadIdx.y; i < 32; i += 8)
    if (left + i < cols && top + threadIdx.x < rows) y[(left + i) * rows + top + threadIdx.x] = tile[threadIdx.x][i];
}
"""
