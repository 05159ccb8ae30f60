# hint: Two blocks change the same element
axpy = r"""
__global__ void axpy(float a, const float* x, float* y, int n) {
  for (int i = threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = a * x[i] + y[i];
}
"""
