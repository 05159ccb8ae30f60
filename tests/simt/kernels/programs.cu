#include <cuda_fp16.h>
#include <cuda_pipeline.h>

__global__ void saxpy(const float* x, float* y, float a, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = fmaf(a, x[i], y[i]);
}
__global__ void three_dimensions(int* out) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z * blockDim.z + threadIdx.z;
  int w = gridDim.x * blockDim.x, h = gridDim.y * blockDim.y;
  out[(z * h + y) * w + x] = x + 100 * y + 10000 * z;
}
__global__ void copy_vectors(const float4* x, float4* y, const double2* a, double2* b, const char4* c, char4* d) {
  int i = threadIdx.x; y[i] = x[i]; b[i] = a[i]; d[i] = c[i];
}
__global__ void transpose(const float* in, float* out, int n, int m) {
  __shared__ float tile[32][33];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) if (x < m && y + j < n) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * m + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x; y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) if (x < n && y + j < m) out[(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
}
__global__ void tiled_product(const float* a, const float* b, float* c, int n) {
  __shared__ float as[16][16], bs[16][16];
  int r = blockIdx.y * 16 + threadIdx.y, q = blockIdx.x * 16 + threadIdx.x; float acc = 0;
  for (int k = 0; k < n; k += 16) {
    as[threadIdx.y][threadIdx.x] = (r < n && k + threadIdx.x < n) ? a[r * n + k + threadIdx.x] : 0.f;
    bs[threadIdx.y][threadIdx.x] = (q < n && k + threadIdx.y < n) ? b[(k + threadIdx.y) * n + q] : 0.f;
    __syncthreads();
    for (int i = 0; i < 16; i++) acc += as[threadIdx.y][i] * bs[i][threadIdx.x];
    __syncthreads();
  }
  if (r < n && q < n) c[r * n + q] = acc;
}
__global__ void block_sum(const float* x, float* out, int n) {
  extern __shared__ float s[]; int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  s[t] = i < n ? x[i] : 0.f; __syncthreads();
  for (int w = blockDim.x / 2; w > 0; w >>= 1) { if (t < w) s[t] += s[t + w]; __syncthreads(); }
  if (t == 0) atomicAdd(out, s[0]);
}
__global__ void warp_sum(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, v = i < n ? x[i] : 0;
  for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync(0xffffffffu, v, o);
  if ((threadIdx.x & 31) == 0) atomicAdd(out, v);
}
__global__ void butterfly_max(const float* x, float* y) {
  float v = x[threadIdx.x];
  for (int o = 1; o < 32; o *= 2) v = fmaxf(v, __shfl_xor_sync(~0u, v, o));
  y[threadIdx.x] = v;
}
__global__ void segments(const int* x, int* y) {
  int v = x[threadIdx.x];
  y[threadIdx.x] = __shfl_up_sync(~0u, v, 3, 8) + 1000 * __shfl_sync(~0u, v, threadIdx.x * 5, 16) + 1000000 * __shfl_down_sync(~0u, v, 9);
}
__global__ void scan(const int* x, int* y, int n) {
  __shared__ int s[2][256]; int t = threadIdx.x, from = 0;
  s[0][t] = t < n ? x[t] : 0; __syncthreads();
  for (int d = 1; d < 256; d *= 2) {
    s[1 - from][t] = s[from][t] + (t >= d ? s[from][t - d] : 0); from = 1 - from; __syncthreads();
  }
  if (t < n) y[t] = s[from][t];
}
__global__ void warp_scan(const int* x, int* y) {
  int v = x[threadIdx.x], lane = threadIdx.x & 31;
  for (int o = 1; o < 32; o *= 2) { int u = __shfl_up_sync(~0u, v, o); if (lane >= o) v += u; }
  y[threadIdx.x] = v;
}
__global__ void histogram(const int* x, int* bins, int n) {
  __shared__ int s[64];
  if (threadIdx.x < 64) s[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&s[x[i]], 1);
  __syncthreads();
  if (threadIdx.x < 64) atomicAdd(&bins[threadIdx.x], s[threadIdx.x]);
}
__global__ void stencil(const float* x, float* y, int n) {
  __shared__ float s[66]; int i = blockIdx.x * 64 + threadIdx.x, t = threadIdx.x + 1;
  s[t] = i < n ? x[i] : 0.f;
  if (threadIdx.x == 0) s[0] = i > 0 ? x[i - 1] : 0.f;
  if (threadIdx.x == 63) s[65] = i + 1 < n ? x[i + 1] : 0.f;
  __syncthreads();
  if (i < n) y[i] = s[t - 1] + s[t] + s[t + 1];
}
__global__ void softmax(const float* x, float* y, int n) {
  __shared__ float s[4]; const float* row = x + blockIdx.x * n; int t = threadIdx.x; float m = -INFINITY, sum = 0;
  for (int i = t; i < n; i += 128) m = fmaxf(m, row[i]);
  for (int o = 16; o; o /= 2) m = fmaxf(m, __shfl_xor_sync(~0u, m, o));
  if (t % 32 == 0) s[t / 32] = m;
  __syncthreads();
  m = fmaxf(fmaxf(s[0], s[1]), fmaxf(s[2], s[3]));
  __syncthreads();
  for (int i = t; i < n; i += 128) sum += expf(row[i] - m);
  for (int o = 16; o; o /= 2) sum += __shfl_xor_sync(~0u, sum, o);
  if (t % 32 == 0) s[t / 32] = sum;
  __syncthreads();
  sum = s[0] + s[1] + s[2] + s[3];
  for (int i = t; i < n; i += 128) y[blockIdx.x * n + i] = expf(row[i] - m) / sum;
}
__global__ void mirrored(const int* x, int* y) {
  __shared__ int s[128]; int t = threadIdx.x; s[t] = x[t]; __syncthreads(); y[t] = s[63 - t % 64] + 1000 * s[127 - t];
}
__global__ void votes(const int* x, int* y) {
  int v = x[threadIdx.x]; unsigned even = __ballot_sync(~0u, v % 2 == 0), same = __match_any_sync(~0u, v);
  int* o = y + 8 * threadIdx.x; o[0] = even; o[1] = __any_sync(~0u, v > 7); o[2] = __all_sync(~0u, v >= 0); o[3] = same; o[4] = __activemask();
  o[5] = __reduce_add_sync(~0u, v); o[6] = __reduce_max_sync(~0u, v); o[7] = __syncthreads_count(v > 3);
}
__global__ void atomics(int* a, unsigned* u, float* f, unsigned long long* l, double* d) {
  int i = threadIdx.x;
  atomicAdd(a, i); atomicSub(a + 1, i); atomicMin(a + 2, i - 5); atomicMax(a + 3, i); atomicAnd(a + 4, ~(1 << (i & 7))); atomicOr(a + 5, 1 << (i & 15));
  atomicXor(a + 6, i); atomicInc(u, 9u); atomicDec(u + 1, 9u); atomicAdd(f, 0.5f); atomicAdd(l, 1ull << 33); atomicAdd(d, 0.25); atomicMax(u + 2, (unsigned)i);
  a[8 + i] = atomicAdd(a + 7, 1); a[100] = 0; atomicExch(a + 101, i);
}
__device__ float atomic_multiply(float* p, float v) {
  int* q = (int*)p; int old = *q, seen;
  do { seen = old; old = atomicCAS(q, seen, __float_as_int(v * __int_as_float(seen))); } while (seen != old);
  return __int_as_float(old);
}
__global__ void compare_and_swap(float* y) { atomic_multiply(y, 2.f); }
__global__ void lock(int* mutex, volatile int* sum) {
  bool done = false;
  while (!done) if (atomicCAS(mutex, 0, 1) == 0) { *sum = *sum + 1; __threadfence(); atomicExch(mutex, 0); done = true; }
}
__global__ void lock_across_the_loop(int* mutex, volatile int* sum) {
  while (atomicCAS(mutex, 0, 1) != 0) ;
  *sum = *sum + 1; __threadfence(); atomicExch(mutex, 0);
}
__constant__ float weights[4] = {0.5f, 1.f, 2.f, 4.f};
__device__ int launches = 3;
__global__ void constants(float* y) { y[threadIdx.x] = weights[threadIdx.x & 3] * weights[2]; if (threadIdx.x == 0) launches++; }
__global__ void read_launches(int* y) { *y = launches; }
__global__ void local_array(const int* x, int* y) {
  int a[16];
  for (int i = 0; i < 16; i++) a[i] = x[i] * threadIdx.x;
  for (int i = 0; i < 16; i++) { int j = x[i] & 15; int t = a[i]; a[i] = a[j]; a[j] = t; }
  int s = 0; for (int i = 0; i < 16; i++) s += a[i] * i; y[threadIdx.x] = s;
}
__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
__global__ void recursion(int* y) { y[threadIdx.x] = fibonacci(threadIdx.x); }
__device__ __noinline__ float by_pointer(float* p, int k) { p[k] += 1.f; return p[k] * 2.f; }
__global__ void generic(float* x, float* y) {
  __shared__ float s[32]; float l[2] = {x[threadIdx.x], 0.f}; s[threadIdx.x] = 5.f;
  y[threadIdx.x] = by_pointer(s, threadIdx.x) + by_pointer(l, threadIdx.x & 1) + by_pointer(x, threadIdx.x);
}
__global__ void mixed_pointers(float* x, float* y) {
  __shared__ float s[32]; s[threadIdx.x] = threadIdx.x; __syncthreads();
  float* p = threadIdx.x & 1 ? s : x; y[threadIdx.x] = by_pointer(p, threadIdx.x);
}
__global__ void switches(int* y) {
  int v = 0;
  switch (threadIdx.x % 9) { case 0: v = 5; break; case 1: v = threadIdx.x; case 2: v += 7; break; case 3: v = 9 * threadIdx.x; break; case 4: v = 1; break;
    case 5: v = 77; break; case 6: v = -threadIdx.x; break; case 7: v = 3; break; default: v = 1000; }
  y[threadIdx.x] = v;
}
__global__ void collatz(const int* x, int* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return;
  int steps = 0; for (long long v = x[i]; v != 1; v = v & 1 ? 3 * v + 1 : v / 2) steps++;
  y[i] = steps;
}
__global__ void nested(const int* x, int* y) {
  int s = 0;
  for (int i = 0; i < x[threadIdx.x]; i++) { for (int j = 0; j <= i; j++) { if ((i + j) % 3 == 0) continue; if (j > 6) break; s += i * j + 1; } }
  y[threadIdx.x] = s;
}
struct Pair { int a; float b; double c; };
__global__ void structure(Pair p, char c, short s, bool flag, double d, long long l, double* y) { y[0] = p.a + p.b + p.c + c + s + flag + d + l; }
__global__ void producer_consumer(const int* x, int* y) {
  __shared__ int s[64]; int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int i = 0; i < 4; i++) {
    if (warp == 0) { s[lane] = x[i * 32 + lane]; asm volatile("bar.sync 1, 64;" ::: "memory"); asm volatile("bar.sync 2, 64;" ::: "memory"); }
    else { asm volatile("bar.sync 1, 64;" ::: "memory"); y[i * 32 + lane] = s[31 - lane]; asm volatile("bar.sync 2, 64;" ::: "memory"); }
  }
}
__global__ void asynchronous(const float4* x, float4* y) {
  __shared__ float4 s[64];
  __pipeline_memcpy_async(&s[threadIdx.x], &x[threadIdx.x], 16); __pipeline_commit(); __pipeline_wait_prior(0); __syncthreads();
  y[threadIdx.x] = s[63 - threadIdx.x];
}
__global__ void tensor_cores(const __half* a, const __half* b, const float* c, float* d) {
  __shared__ __half as[16][16], bs[8][16];
  int lane = threadIdx.x;
  for (int i = lane; i < 256; i += 32) as[i / 16][i % 16] = a[i];
  for (int i = lane; i < 128; i += 32) bs[i / 16][i % 16] = b[i];
  __syncwarp();
  unsigned ra[4], rb[2]; float acc[4];
  unsigned pa = __cvta_generic_to_shared(&as[lane % 16][lane / 16 * 8]), pb = __cvta_generic_to_shared(&bs[lane % 8][lane / 8 % 2 * 8]);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(ra[0]), "=r"(ra[1]), "=r"(ra[2]), "=r"(ra[3]) : "r"(pa));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];" : "=r"(rb[0]), "=r"(rb[1]) : "r"(pb));
  for (int i = 0; i < 4; i++) acc[i] = c[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2];
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
    : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3]) : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]));
  for (int i = 0; i < 4; i++) d[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = acc[i];
}
template <int N> __device__ int power(int x) { int r = 1; for (int i = 0; i < N; i++) r *= x; return r; }
__global__ void templates(int* y) { y[threadIdx.x] = power<3>(threadIdx.x); }
__global__ void __launch_bounds__(64) bounded(int* y) { y[threadIdx.x] = threadIdx.x; }
