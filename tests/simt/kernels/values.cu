#include <cuda_fp16.h>
#include <cuda_bf16.h>
#define EACH int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n)

__global__ void fma_f32(const float* a, const float* b, const float* c, float* d, int n) { EACH d[i] = fmaf(a[i], b[i], c[i]); }
__global__ void fma_f64(const double* a, const double* b, const double* c, double* d, int n) { EACH d[i] = fma(a[i], b[i], c[i]); }
__global__ void fma_modes(const float* a, const float* b, const float* c, float* d, int n) {
  EACH { d[3 * i] = __fmaf_rz(a[i], b[i], c[i]); d[3 * i + 1] = __fmaf_rd(a[i], b[i], c[i]); d[3 * i + 2] = __fmaf_ru(a[i], b[i], c[i]); }
}
__global__ void add_modes(const float* a, const float* b, float* d, int n) {
  EACH { d[3 * i] = __fadd_rz(a[i], b[i]); d[3 * i + 1] = __fadd_rd(a[i], b[i]); d[3 * i + 2] = __fadd_ru(a[i], b[i]); }
}
__global__ void divide_modes(const float* a, const float* b, float* d, int n) {
  EACH { d[4 * i] = __fdiv_rn(a[i], b[i]); d[4 * i + 1] = __fdiv_rz(a[i], b[i]); d[4 * i + 2] = __fdiv_rd(a[i], b[i]); d[4 * i + 3] = __fdiv_ru(a[i], b[i]); }
}
__global__ void float_basics(const float* a, const float* b, float* d, int n) {
  EACH { d[8 * i] = __fadd_rn(a[i], b[i]); d[8 * i + 1] = __fsub_rn(a[i], b[i]); d[8 * i + 2] = __fmul_rn(a[i], b[i]);
    d[8 * i + 3] = a[i] / b[i]; d[8 * i + 4] = sqrtf(fabsf(a[i])); d[8 * i + 5] = fminf(a[i], b[i]); d[8 * i + 6] = fmaxf(a[i], b[i]);
    d[8 * i + 7] = copysignf(a[i], b[i]); }
}
__global__ void double_basics(const double* a, const double* b, double* d, int n) {
  EACH { d[4 * i] = __dadd_rn(a[i], b[i]); d[4 * i + 1] = __dmul_rn(a[i], b[i]); d[4 * i + 2] = a[i] / b[i]; d[4 * i + 3] = sqrt(fabs(a[i])); }
}
__global__ void half_basics(const __half* a, const __half* b, __half* d, int n) {
  EACH { d[4 * i] = __hadd(a[i], b[i]); d[4 * i + 1] = __hmul(a[i], b[i]); d[4 * i + 2] = __hsub(a[i], b[i]); d[4 * i + 3] = __hfma(a[i], b[i], a[i]); }
}
__global__ void half2_basics(const __half2* a, const __half2* b, __half2* d, int n) {
  EACH { d[3 * i] = __hadd2(a[i], b[i]); d[3 * i + 1] = __hmul2(a[i], b[i]); d[3 * i + 2] = __hmax2(a[i], b[i]); }
}
__global__ void bf16_basics(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* d, int n) {
  EACH { d[3 * i] = __hadd(a[i], b[i]); d[3 * i + 1] = __hmul(a[i], b[i]); d[3 * i + 2] = __hneg(a[i]); }
}
__global__ void int_basics(const int* a, const int* b, int* d, int n) {
  EACH { int x = a[i], y = b[i]; int* o = d + 16 * i;
    o[0] = x + y; o[1] = x - y; o[2] = x * y; o[3] = y ? x / y : 0; o[4] = y ? x % y : 0; o[5] = min(x, y); o[6] = max(x, y); o[7] = __mulhi(x, y);
    o[8] = x & y; o[9] = x | y; o[10] = x ^ y; o[11] = ~x; o[12] = x << (y & 31); o[13] = x >> (y & 31); o[14] = (unsigned)x >> (y & 31); o[15] = abs(x); }
}
__global__ void long_basics(const long long* a, const long long* b, long long* d, int n) {
  EACH { long long x = a[i], y = b[i]; long long* o = d + 8 * i;
    o[0] = x + y; o[1] = x * y; o[2] = y ? x / y : 0; o[3] = y ? x % y : 0; o[4] = __mul64hi(x, y); o[5] = x >> (y & 63); o[6] = max(x, y);
    o[7] = (long long)__umul64hi(x, y); }
}
__global__ void bit_tricks(const int* a, const int* b, int* d, int n) {
  EACH { unsigned x = a[i], y = b[i]; int* o = d + 10 * i;
    o[0] = __popc(x); o[1] = __clz(x); o[2] = __ffs(x); o[3] = __brev(x); o[4] = __byte_perm(x, y, 0x5140); o[5] = __funnelshift_l(x, y, i);
    o[6] = __funnelshift_r(x, y, i); o[7] = __dp4a((int)x, (int)y, i); o[8] = __popcll(((unsigned long long)x << 32) | y); o[9] = __clzll((unsigned long long)x << 16); }
}
__global__ void small_types(const short* a, const unsigned char* b, short* d, int n) { EACH d[i] = (short)(a[i] * 3 + b[i]) >> 1; }
__global__ void convert_floats(const float* a, int* d, long long* e, __half* h, __nv_bfloat16* b, double* f, int n) {
  EACH { float x = a[i]; d[5 * i] = __float2int_rn(x); d[5 * i + 1] = __float2int_rz(x); d[5 * i + 2] = __float2int_rd(x); d[5 * i + 3] = __float2int_ru(x);
    d[5 * i + 4] = (int)__float2uint_rz(x); e[i] = __float2ll_rn(x); h[i] = __float2half_rn(x); b[i] = __float2bfloat16(x); f[i] = x; }
}
__global__ void convert_ints(const int* a, const long long* b, float* d, double* f, int n) {
  EACH { d[5 * i] = a[i]; d[5 * i + 1] = (float)(unsigned)a[i]; d[5 * i + 2] = b[i]; d[5 * i + 3] = __int2float_rz(a[i]); d[5 * i + 4] = __ll2float_rd(b[i]); f[i] = b[i]; }
}
__global__ void narrow_double(const double* a, float* d, int n) {
  EACH { d[4 * i] = a[i]; d[4 * i + 1] = __double2float_rz(a[i]); d[4 * i + 2] = __double2float_rd(a[i]); d[4 * i + 3] = __double2float_ru(a[i]); }
}
__global__ void round_floats(const float* a, float* d, int n) {
  EACH { d[4 * i] = rintf(a[i]); d[4 * i + 1] = floorf(a[i]); d[4 * i + 2] = ceilf(a[i]); d[4 * i + 3] = truncf(a[i]); }
}
__global__ void compare_floats(const float* a, const float* b, int* d, int n) {
  EACH d[i] = (a[i] < b[i]) | (a[i] <= b[i]) << 1 | (a[i] == b[i]) << 2 | (a[i] != b[i]) << 3 | !(a[i] < b[i]) << 4 | !(a[i] >= b[i]) << 5 | isnan(a[i]) << 6;
}
__global__ void library(const float* a, float* d, int n) {
  EACH { d[6 * i] = expf(a[i]); d[6 * i + 1] = logf(fabsf(a[i])); d[6 * i + 2] = sinf(a[i]); d[6 * i + 3] = tanhf(a[i]); d[6 * i + 4] = powf(fabsf(a[i]), 1.5f); d[6 * i + 5] = erff(a[i]); }
}
__global__ void fast(const float* a, float* d, int n) {
  EACH { d[6 * i] = __expf(a[i]); d[6 * i + 1] = __logf(fabsf(a[i])); d[6 * i + 2] = __sinf(a[i]); d[6 * i + 3] = rsqrtf(fabsf(a[i])); d[6 * i + 4] = __frcp_rn(a[i]); d[6 * i + 5] = __fdividef(a[i], 3.f); }
}
__global__ void library_f64(const double* a, double* d, int n) { EACH { d[3 * i] = exp(a[i]); d[3 * i + 1] = sin(a[i]); d[3 * i + 2] = log(fabs(a[i])); } }
__global__ void library_f16(const __half* a, __half* d, int n) { EACH { d[3 * i] = hexp(a[i]); d[3 * i + 1] = hrsqrt(__habs(a[i])); d[3 * i + 2] = hsin(a[i]); } }
