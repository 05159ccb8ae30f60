#define EACH int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n)

__global__ void division(const long long* a, const long long* b, long long* d, int n) {
  EACH {
    __int128 x = ((__int128)a[i] << 64) | (unsigned long long)b[i], y = b[i] >> (i % 50) | 1;
    __int128 quotient = x / y, rest = x % y;
    unsigned __int128 positive = (unsigned __int128)x / 1000003;
    long long* o = d + 6 * i;
    o[0] = (long long)quotient; o[1] = (long long)(quotient >> 64);
    o[2] = (long long)rest; o[3] = (long long)(rest >> 64);
    o[4] = (long long)positive; o[5] = (long long)(positive >> 64);
  }
}
__global__ void directed(const double* a, const double* b, double* d, int n) {
  EACH {
    double x = a[i], y = b[i], *o = d + 9 * i;
    o[0] = __ddiv_rz(x, y); o[1] = __ddiv_rd(x, y); o[2] = __ddiv_ru(x, y);
    o[3] = __drcp_rz(y); o[4] = __drcp_rd(y); o[5] = __drcp_ru(y);
    o[6] = __dsqrt_rz(fabs(x)); o[7] = __dsqrt_rd(fabs(x)); o[8] = __dsqrt_ru(fabs(x));
  }
}
__global__ void fused(const double* a, const double* b, const double* c, double* d, int n) {
  EACH {
    double* o = d + 4 * i;
    o[0] = fma(a[i], b[i], c[i]); o[1] = __fma_rz(a[i], b[i], c[i]);
    o[2] = __fma_rd(a[i], b[i], c[i]); o[3] = __fma_ru(a[i], b[i], c[i]);
  }
}
__global__ void differences(const int* a, const int* b, int* d, int n) {
  EACH { d[3 * i] = __vabsdiffu4(a[i], b[i]); d[3 * i + 1] = __vsadu4(a[i], b[i]); d[3 * i + 2] = __vsadu2(a[i], b[i]); }
}
