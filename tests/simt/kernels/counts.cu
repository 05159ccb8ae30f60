__global__ void strided(const float* x, float* y, int stride, int offset) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[i * stride + offset];
}
__global__ void wide(const double* x, const float4* v, double* y, float4* w) {
  int i = threadIdx.x;
  y[i] = x[i];
  w[i] = v[i];
}
__global__ void banks(float* y, int stride) {
  __shared__ float s[32 * 33];
  for (int i = threadIdx.x; i < 32 * 33; i += 32) s[i] = i;
  __syncwarp();
  y[threadIdx.x] = s[threadIdx.x * stride];
}
__global__ void wide_banks(float4* y) {
  __shared__ float4 s[32];
  s[threadIdx.x] = make_float4(1.f, 2.f, 3.f, 4.f);
  __syncwarp();
  y[threadIdx.x] = s[threadIdx.x ^ 1];
}
__global__ void transpose_naive(const float* in, float* out, int n) {
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  out[x * n + y] = in[y * n + x];
}
__global__ void diverges(const int* x, int* y) {
  int v = x[threadIdx.x];
  if (v & 1) {
    for (int i = 0; i < v; i++) y[threadIdx.x] += i * v ^ threadIdx.x;
  }
  y[threadIdx.x] += 1;
}
__global__ void conflicts(int* bins, const int* x) {
  atomicAdd(&bins[x[threadIdx.x]], 1);
}
__global__ void arithmetic(float* x, double* d) {
  x[threadIdx.x] = fmaf(x[threadIdx.x], 2.f, 1.f) + 3.f;
  d[threadIdx.x] = d[threadIdx.x] * 3.0;
}
