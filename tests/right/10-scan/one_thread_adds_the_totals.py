# The first thread alone adds up the totals of the others.
scan = r"""
__global__ void scan(const float* x, float* y, int n) {
  __shared__ float totals[256];
  int t = threadIdx.x, first = 8 * (blockIdx.x * blockDim.x + t);
  float own[8], sum = 0;
  for (int i = 0; i < 8; ++i) {
    if (first + i < n) sum += x[first + i];
    own[i] = sum;
  }
  totals[t] = sum;
  __syncthreads();
  if (t == 0)
    for (int i = 1; i < blockDim.x; ++i) totals[i] += totals[i - 1];
  __syncthreads();
  float before = t > 0 ? totals[t - 1] : 0;
  for (int i = 0; i < 8; ++i)
    if (first + i < n) y[first + i] = before + own[i];
}
"""
