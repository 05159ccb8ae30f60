# hint: does not use shared memory
transpose = r"""
__global__ void transpose(const float* x, float* y, int rows, int cols) {
  int c = blockIdx.x * 32 + threadIdx.x;
  for (int i = threadIdx.y; i < 32; i += 8) {
    int r = blockIdx.y * 32 + i;
    if (r < rows && c < cols) y[c * rows + r] = x[r * cols + c];
  }
}
"""
