# hint: Two blocks change the same element
adjust = r"""
__global__ void adjust(float* image, const float* gain, const float* bias, int rows, int cols) {
  int r = blockIdx.y * blockDim.y + threadIdx.y;
  if (r >= rows) return;
  for (int c = 0; c < cols; c++)
    image[r * cols + c] = gain[r] * image[r * cols + c] + bias[c];
}
"""
