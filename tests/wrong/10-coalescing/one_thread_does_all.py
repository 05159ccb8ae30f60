# hint: a single thread works
axpy = r"""
__global__ void axpy(float a, const float* x, float* y, int n) {
  if (blockIdx.x == 0 && threadIdx.x == 0)
    for (int i = 0; i < n; i++) y[i] = a * x[i] + y[i];
}
"""
