# hint: The grid is rounded up to whole blocks, so some threads have no element
adjust = r"""
__global__ void adjust(float* image, const float* gain, const float* bias, int rows, int cols) {
  int c = blockIdx.x * blockDim.x + threadIdx.x;
  int r = blockIdx.y * blockDim.y + threadIdx.y;
  image[r * cols + c] = gain[r] * image[r * cols + c] + bias[c];
}
"""
