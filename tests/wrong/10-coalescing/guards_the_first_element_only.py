# hint: A thread goes past the end
axpy = r"""
__global__ void axpy(float a, const float* x, float* y, int n) {
  int n_threads = gridDim.x * blockDim.x;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    for (int k = 0; k < (n + n_threads - 1) / n_threads; k++, i += n_threads) y[i] = a * x[i] + y[i];
}
"""
