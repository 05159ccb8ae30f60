# hint: No element was changed
adjust = r"""
__global__ void adjust(float* image, const float* gain, const float* bias, int rows, int cols) {
  int c = blockIdx.x * blockDim.x + threadIdx.x;
  int r = blockIdx.y * blockDim.y + threadIdx.y;
  if (r >= rows || c >= cols) return;
  float value = gain[r] * image[r * cols + c] + bias[c];
  if (value < 0) image[r * cols + c] = value;
}
"""
