# hint: The last elements are missing
axpy = r"""
__global__ void axpy(float a, const float* x, float* y, int n) {
  int n_threads = gridDim.x * blockDim.x;
  for (int k = 0; k < n / n_threads; k++) {
    int i = k * n_threads + blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = a * x[i] + y[i];
  }
}
"""
