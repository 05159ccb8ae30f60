# A guard around the work in place of a return, and a reference to the element.
adjust = r"""
__global__ void adjust(float* image, const float* gain, const float* bias, int rows, int cols) {
  int c = blockIdx.x * blockDim.x + threadIdx.x;
  int r = blockIdx.y * blockDim.y + threadIdx.y;
  if (r < rows && c < cols) {
    float& element = image[(long long)r * cols + c];
    element = fmaf(gain[r], element, bias[c]);
  }
}
"""
