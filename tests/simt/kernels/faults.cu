__global__ void no_guard(const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[i] * 2.f;
}
__global__ void before_start(const float* x, float* y) {
  int i = threadIdx.x;
  y[i] = x[i - 1];
}
__global__ void misaligned(const float* x, float4* y) {
  y[threadIdx.x] = *(const float4*)(x + 1);
}
__global__ void shared_overflow(float* y) {
  __shared__ float tile[32];
  tile[threadIdx.x + 8] = 1.f;
  __syncthreads();
  y[threadIdx.x] = tile[threadIdx.x];
}
__global__ void uninitialized(float* y) {
  __shared__ float tile[64];
  if (threadIdx.x < 32) tile[threadIdx.x] = 1.f;
  __syncthreads();
  y[threadIdx.x] = tile[threadIdx.x];
}
__global__ void missing_barrier(const float* x, float* y) {
  __shared__ float tile[64];
  tile[threadIdx.x] = x[threadIdx.x];
  y[threadIdx.x] = tile[63 - threadIdx.x];
}
__global__ void race_in_a_warp(float* y) {
  __shared__ float tile[32];
  tile[threadIdx.x] = threadIdx.x;
  __syncwarp();
  float v = tile[threadIdx.x ^ 1];
  tile[threadIdx.x] = v + 1.f;
  y[threadIdx.x] = tile[threadIdx.x];
}
__global__ void two_writers(float* y) {
  __shared__ float cell;
  cell = threadIdx.x;
  __syncthreads();
  y[threadIdx.x] = cell;
}
__global__ void same_value(float* y) {
  __shared__ float cell;
  cell = 3.f;
  __syncthreads();
  y[threadIdx.x] = cell;
}
__global__ void barrier_in_a_branch(float* y) {
  if (threadIdx.x < 32) __syncthreads();
  y[threadIdx.x] = 1.f;
}
__global__ void left_before_the_barrier(float* y, int n) {
  if (threadIdx.x >= n) return;
  __syncthreads();
  y[threadIdx.x] = 1.f;
}
__global__ void spins(volatile int* flag, int* y) {
  while (*flag == 0) ;
  y[0] = 1;
}
__global__ void counts_for_ever(int* y, unsigned n) {
  for (unsigned i = 1; i != n; i += 2) y[0] = i;
}
__global__ void reads_a_neighbour(float* x) {
  int i = blockIdx.x;
  float left = x[i > 0 ? i - 1 : 0];
  x[i] = left + 1.f;
}
__global__ void last_block_sums(const float* x, volatile float* partial, float* y, unsigned* done) {
  __shared__ bool last;
  partial[blockIdx.x] = x[blockIdx.x];
  __threadfence();
  last = atomicAdd(done, 1u) == gridDim.x - 1;
  __syncthreads();
  if (last) { float s = 0; for (int i = 0; i < gridDim.x; i++) s += partial[i]; *y = s; }
}
__global__ void wrong_mask(int* y) {
  int v = threadIdx.x;
  if (threadIdx.x < 16) v += __shfl_down_sync(0xffffffffu, v, 1);
  y[threadIdx.x] = v;
}
__global__ void from_an_idle_lane(int* y) {
  int v = threadIdx.x;
  if (threadIdx.x < 16) v = __shfl_sync(0x0000ffffu, v, 20);
  y[threadIdx.x] = v;
}
__global__ void mask_without_itself(int* y) {
  int v = threadIdx.x;
  y[threadIdx.x] = __shfl_xor_sync(0x0000ffffu, v, 1);
}
__global__ void asserts(const int* x) { assert(x[threadIdx.x] >= 0); }
__global__ void traps(const int* x) { if (x[threadIdx.x] < 0) __trap(); }
__device__ __noinline__ int deep(int n) { return n > 1000 ? n : deep(n + 1) * deep(n + 2) + 1; }
__global__ void recursion(int* y) { y[0] = deep(y[0]); }
__constant__ int table[4];
__device__ const int* hidden = table;
__global__ void writes_a_constant(int* y) { ((int*)hidden)[threadIdx.x & 3] = 1; }
__global__ void null(float* x, int* y) { y[0] = ((int*)(long long)y[1])[threadIdx.x]; }
