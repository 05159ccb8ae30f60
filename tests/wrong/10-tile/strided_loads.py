# hint: does not use shared memory
tiled_transpose = r"""
__global__ void tiled_transpose(const float* x, float* y, int rows, int cols) {
  int r = blockIdx.y * 32 + threadIdx.x;
  for (int i = threadIdx.y; i < 32; i += 8) {
    int c = blockIdx.x * 32 + i;
    if (r < rows && c < cols) y[c * rows + r] = x[r * cols + c];
  }
}
"""
