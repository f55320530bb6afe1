// Sharpens an image: each pixel is pushed away from the mean of its eight
// neighbours. A block loads its tile and a border of one pixel into shared
// memory, so that each pixel is read from memory about once.
enum { TILE = 16 };

extern "C" __global__ void sharpen(const float *in, float *out, int width, int height, float amount)
{
    __shared__ float tile[TILE + 2][TILE + 2];
    int x0 = blockIdx.x * TILE - 1, y0 = blockIdx.y * TILE - 1;

    for (int i = threadIdx.y * TILE + threadIdx.x; i < (TILE + 2) * (TILE + 2); i += TILE * TILE) {
        int x = min(max(x0 + i % (TILE + 2), 0), width - 1);
        int y = min(max(y0 + i / (TILE + 2), 0), height - 1);
        tile[i / (TILE + 2)][i % (TILE + 2)] = in[y * width + x];
    }
    __syncthreads();

    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    if (x >= width || y >= height)
        return;
    float sum = 0;
    for (int dy = 0; dy < 3; dy++)
        for (int dx = 0; dx < 3; dx++)
            sum += tile[threadIdx.y + dy][threadIdx.x + dx];
    float centre = tile[threadIdx.y + 1][threadIdx.x + 1];
    out[y * width + x] = centre + amount * (centre - (sum - centre) / 8);
}
