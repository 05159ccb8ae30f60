# hint: or some elements are stored more than once
adjust = r"""
__global__ void adjust(float* image, const float* gain, const float* bias, int rows, int cols) {
  int n_threads = gridDim.x * gridDim.y * blockDim.x * blockDim.y;
  int block = blockIdx.y * gridDim.x + blockIdx.x;
  for (int i = (block * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x; i < rows * cols; i += n_threads) {
    int r = i % rows, c = i / rows;
    image[r * cols + c] = gain[r] * image[r * cols + c] + bias[c];
  }
}
"""
