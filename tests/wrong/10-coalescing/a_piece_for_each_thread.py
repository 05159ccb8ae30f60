# hint: Each thread has a piece of neighbouring elements for itself
axpy = r"""
__global__ void axpy(float a, const float* x, float* y, int n) {
  int n_threads = gridDim.x * blockDim.x;
  int per_thread = (n + n_threads - 1) / n_threads;
  int first = (blockIdx.x * blockDim.x + threadIdx.x) * per_thread;
  for (int i = first; i < min(first + per_thread, n); i++) y[i] = a * x[i] + y[i];
}
"""
