# Accesses of 16 bytes as far as they go, then the rest one by one.
axpy = r"""
__global__ void axpy(float a, const float* x, float* y, int n) {
  int thread = blockIdx.x * blockDim.x + threadIdx.x, n_threads = gridDim.x * blockDim.x;
  const float4* x4 = (const float4*)x;
  float4* y4 = (float4*)y;
  for (int i = thread; i < n / 4; i += n_threads) {
    float4 u = x4[i], v = y4[i];
    y4[i] = make_float4(a * u.x + v.x, a * u.y + v.y, a * u.z + v.z, a * u.w + v.w);
  }
  for (int i = n / 4 * 4 + thread; i < n; i += n_threads) y[i] = a * x[i] + y[i];
}
"""
