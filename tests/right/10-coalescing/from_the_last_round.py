# The rounds in the opposite order.
axpy = r"""
__global__ void axpy(float a, const float* x, float* y, int n) {
  int n_threads = gridDim.x * blockDim.x;
  for (int k = (n - 1) / n_threads; k >= 0; k--) {
    int i = k * n_threads + blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaf(a, x[i], y[i]);
  }
}
"""
