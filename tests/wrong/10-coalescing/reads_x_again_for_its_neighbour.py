# hint: Loads touch more sectors than their bytes fill
axpy = r"""
__global__ void axpy(float a, const float* x, float* y, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    float here = ((const volatile float*)x)[i], before = i > 0 ? ((const volatile float*)x)[i - 1] : here;
    y[i] = a * here + y[i] + 0 * before;
  }
}
"""
