# hint: come from blockIdx * blockDim + threadIdx
adjust = r"""
__global__ void adjust(float* image, const float* gain, const float* bias, int rows, int cols) {
  int c = blockIdx.x * gridDim.x + threadIdx.x;
  int r = blockIdx.y * gridDim.y + threadIdx.y;
  if (r >= rows || c >= cols) return;
  image[r * cols + c] = gain[r] * image[r * cols + c] + bias[c];
}
"""
