# A template for the width, chosen once for the launch; the end thread by thread.
fused = r"""
__device__ float combine(float x, float y) { return fmaxf(x * x, 3 * y + 1); }

template <bool WIDE>
__device__ void part(const float* x, const float* y, float* z, int n) {
  const int first = 4 * (blockIdx.x * 256 + threadIdx.x);
  if (WIDE && first + 3 < n) {
    const float4 a = *(const float4*)(x + first), b = *(const float4*)(y + first);
    *(float4*)(z + first) = {combine(a.x, b.x), combine(a.y, b.y), combine(a.z, b.z), combine(a.w, b.w)};
    return;
  }
  for (int k = first; k < min(first + 4, n); ++k) z[k] = combine(x[k], y[k]);
}

__global__ void fused(const float* x, const float* y, float* z, int n) {
  const bool wide = ((size_t)x & 15) == 0 && ((size_t)y & 15) == 0 && ((size_t)z & 15) == 0;
  if (wide) part<true>(x, y, z, n);
  else part<false>(x, y, z, n);
}
"""
