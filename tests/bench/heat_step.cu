// One step of the heat equation on a square of n x n; its rim stays as it is. For heat.cu and rows_stages.py.
extern "C" __global__ void step(const float *u, float *v, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= n || j >= n)
        return;
    int at = j * n + i;
    bool inside = i > 0 && j > 0 && i < n - 1 && j < n - 1;
    v[at] = inside ? u[at] + 0.1f * (u[at - 1] + u[at + 1] + u[at - n] + u[at + n] - 4 * u[at]) : u[at];
}
