# hint: Each thread has a piece of neighbouring elements for itself
axpy = r"""
__global__ void axpy(float a, const float* x, float* y, int n) {
  for (int first = 8 * (blockIdx.x * blockDim.x + threadIdx.x); first < n; first += 8 * gridDim.x * blockDim.x)
    for (int i = first; i < min(first + 8, n); i++) y[i] = a * x[i] + y[i];
}
"""
