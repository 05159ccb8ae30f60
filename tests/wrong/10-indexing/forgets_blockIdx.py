# hint: Two blocks change the same element
adjust = r"""
__global__ void adjust(float* image, const float* gain, const float* bias, int rows, int cols) {
  int c = threadIdx.x;
  int r = threadIdx.y;
  if (r >= rows || c >= cols) return;
  image[r * cols + c] = gain[r] * image[r * cols + c] + bias[c];
}
"""
