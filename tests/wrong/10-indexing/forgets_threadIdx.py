# hint: all threads of a block have the same blockIdx
adjust = r"""
__global__ void adjust(float* image, const float* gain, const float* bias, int rows, int cols) {
  int c = blockIdx.x * blockDim.x;
  int r = blockIdx.y * blockDim.y;
  if (r >= rows || c >= cols) return;
  image[r * cols + c] = gain[r] * image[r * cols + c] + bias[c];
}
"""
