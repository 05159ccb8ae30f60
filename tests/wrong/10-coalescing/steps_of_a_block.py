# hint: further as the whole grid has threads
axpy = r"""
__global__ void axpy(float a, const float* x, float* y, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x) y[i] = a * x[i] + y[i];
}
"""
