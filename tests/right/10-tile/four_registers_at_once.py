# Four loads are on their way before the first is stored to the tile.
tiled_transpose = r"""
__global__ void tiled_transpose(const float* x, float* y, int rows, int cols) {
  __shared__ float tile[1024];
  const int left = blockIdx.x * 32, top = blockIdx.y * 32, tx = threadIdx.x, ty = threadIdx.y;
  float held[4] = {0, 0, 0, 0};
#pragma unroll
  for (int k = 0; k < 4; k++)
    if (top + ty + 8 * k < rows && left + tx < cols) held[k] = x[(top + ty + 8 * k) * cols + left + tx];
#pragma unroll
  for (int k = 0; k < 4; k++) tile[tx * 32 + ty + 8 * k] = held[k];
  __syncthreads();
#pragma unroll
  for (int k = 0; k < 4; k++)
    if (left + ty + 8 * k < cols && top + tx < rows) y[(left + ty + 8 * k) * rows + top + tx] = tile[(ty + 8 * k) * 32 + tx];
}
"""
