# hint: No element was changed
axpy = r"""
__global__ void axpy(float a, const float* x, float* y, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    float value = a * x[i] + y[i];
    if (value < 0) y[i] = value;
  }
}
"""
