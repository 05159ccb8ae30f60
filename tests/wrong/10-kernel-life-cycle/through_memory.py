# hint: two reads and a write of 16 bytes
fused = r"""
__device__ float combine(float x, float y) { return fmaxf(x * x, 3 * y + 1); }

__global__ void fused(const float* x, const float* y, float* z, int n) {
  int t = blockIdx.x * blockDim.x + threadIdx.x, i = 4 * t;
  bool aligned = ((unsigned long long)x | (unsigned long long)y | (unsigned long long)z) % 16 == 0;
  if (aligned && i + 4 <= n) {
    float4 a = ((const float4*)x)[t];
    ((volatile float*)z)[i] = a.x * a.x, ((volatile float*)z)[i + 1] = a.y * a.y;
    ((volatile float*)z)[i + 2] = a.z * a.z, ((volatile float*)z)[i + 3] = a.w * a.w;
    float4 b = ((const float4*)y)[t];
    float* v = (float*)&b;
    for (int k = 0; k < 4; ++k) z[i + k] = fmaxf(((volatile float*)z)[i + k], 3 * v[k] + 1);
  } else {
    for (int k = i; k < i + 4 && k < n; ++k) z[k] = combine(x[k], y[k]);
  }
}
"""
