# The launch's threads are numbered through, and each takes elements by its number.
adjust = r"""
__global__ void adjust(float* image, const float* gain, const float* bias, int rows, int cols) {
  int n_threads = gridDim.x * gridDim.y * blockDim.x * blockDim.y;
  int block = blockIdx.y * gridDim.x + blockIdx.x;
  int thread = (block * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  for (int i = thread; i < rows * cols; i += n_threads)
    image[i] = gain[i / cols] * image[i] + bias[i % cols];
}
"""
