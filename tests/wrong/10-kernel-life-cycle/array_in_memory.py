# hint: keeps bytes in memory
fused = r"""
__device__ float combine(float x, float y) { return fmaxf(x * x, 3 * y + 1); }

__global__ void fused(const float* x, const float* y, float* z, int n) {
  int t = blockIdx.x * blockDim.x + threadIdx.x, i = 4 * t;
  bool aligned = ((unsigned long long)x | (unsigned long long)y | (unsigned long long)z) % 16 == 0;
  float keep[64];
  if (aligned && i + 4 <= n) {
    float4 a = ((const float4*)x)[t], b = ((const float4*)y)[t];
    int start = (n + t) % 16;
    keep[start] = combine(a.x, b.x), keep[start + 16] = combine(a.y, b.y);
    keep[start + 32] = combine(a.z, b.z), keep[start + 48] = combine(a.w, b.w);
    ((float4*)z)[t] = make_float4(keep[(n + t) & 15], keep[((n + t) & 15) + 16], keep[((n + t) & 15) + 32], keep[((n + t) & 15) + 48]);
  } else {
    for (int k = i; k < i + 4 && k < n; ++k) z[k] = combine(x[k], y[k]);
  }
}
"""
