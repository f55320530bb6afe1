// What softmax.py computes, for the CPU: with the same grid and block, so a block of 128 threads takes a row.
extern "C" __global__ void softmax(const float *rows, float *result, int columns)
{
    __shared__ float most[128], sum[128];
    int thread = threadIdx.x;
    rows += blockIdx.x * (size_t)columns, result += blockIdx.x * (size_t)columns;
    most[thread] = -INFINITY, sum[thread] = 0;
    for (int i = thread; i < columns; i += 128)
        most[thread] = fmaxf(most[thread], rows[i]);
    for (int half = 64; half; half /= 2) {
        __syncthreads();
        if (thread < half)
            most[thread] = fmaxf(most[thread], most[thread + half]);
    }
    __syncthreads();
    for (int i = thread; i < columns; i += 128)
        sum[thread] += result[i] = expf(rows[i] - most[0]);
    for (int half = 64; half; half /= 2) {
        __syncthreads();
        if (thread < half)
            sum[thread] += sum[thread + half];
    }
    __syncthreads();
    for (int i = thread; i < columns; i += 128)
        result[i] /= sum[0];
}
