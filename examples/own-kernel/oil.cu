// Makes a painting of an image: each pixel becomes the mean of the brightness that is most
// frequent around it, of LEVELS levels, within RADIUS pixels. It counts, which no expression
// does. A block loads its tile and a border into shared memory, so that each pixel is read
// from memory about once.
enum { TILE = 16, SIDE = TILE + 2 * RADIUS };

extern "C" __global__ void oil(const float *in, float *out, int width, int height, float white)
{
    __shared__ float tile[SIDE][SIDE];
    int x0 = blockIdx.x * TILE - RADIUS, y0 = blockIdx.y * TILE - RADIUS;

    for (int i = threadIdx.y * TILE + threadIdx.x; i < SIDE * SIDE; i += TILE * TILE) {
        int x = min(max(x0 + i % SIDE, 0), width - 1);
        int y = min(max(y0 + i / SIDE, 0), height - 1);
        tile[i / SIDE][i % SIDE] = in[y * width + x];
    }
    __syncthreads();

    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    if (x >= width || y >= height)
        return;
    int count[LEVELS] = { 0 }, most = 0;
    float sum[LEVELS] = { 0 };
    for (int dy = 0; dy <= 2 * RADIUS; dy++)
        for (int dx = 0; dx <= 2 * RADIUS; dx++) {
            float v = tile[threadIdx.y + dy][threadIdx.x + dx];
            int level = min(max((int)(v / white * LEVELS), 0), LEVELS - 1);
            count[level]++;
            sum[level] += v;
        }
    for (int i = 1; i < LEVELS; i++)
        if (count[i] > count[most])
            most = i;
    out[y * width + x] = sum[most] / count[most];
}
