# hint: begin in the middle of a sector
axpy = r"""
__global__ void axpy(float a, const float* x, float* y, int n) {
  for (int k = blockIdx.x * blockDim.x + threadIdx.x; k < n; k += gridDim.x * blockDim.x) {
    int i = n - 1 - k;
    y[i] = a * x[i] + y[i];
  }
}
"""
