// attend.cu - attention of one step: a block is one head of one sequence. It puts the key and the value of this step into
// the cache, and makes the mean of all values up to this one, weighted by softmax(query . key / sqrt(size)).
//
// Arrays: qkv [sequences, 3, heads, size], seen [sequences, heads, size], cache [2, sequences, steps, heads, size].
// The number of threads is a power of two, at least `size` / 4, which is a power of two, too.
struct alignas(16) eight { gp_half v[8]; };
struct alignas(8) four { gp_half v[4]; };

extern "C" __global__ void attend(const gp_half *qkv, gp_half *seen, gp_half *cache, const gp_frame_info *frame, int steps,
                                  int size)
{
    const int me = threadIdx.x, threads = blockDim.x, width = gridDim.x * size, now = (unsigned)frame->index % steps;
    const size_t sequence = blockIdx.y, from = blockIdx.x * size, row = (size_t)steps * width;
    gp_half *keys = cache + sequence * row + from, *values = keys + gridDim.y * row;
    GP_SHARED(float, query);                       // [size]
    float *sums = query + size;                    // [5][threads]
    float *score = sums + 5 * threads;             // [steps]
    float *products = score + steps;               // [steps][size / 8]
    qkv += sequence * 3 * width + from;

    for (int i = me; i < size; i += threads) {
        query[i] = gp_from_half(qkv[i]) * rsqrtf((float)size);
        keys[(size_t)now * width + i] = qkv[width + i];
        values[(size_t)now * width + i] = qkv[2 * width + i];
    }
    __syncthreads();

    // query . key: eight elements a thread, then those of a position.
    const int parts = size / 8, part = me % parts;
#pragma unroll 4
    for (int t = me / parts; t <= now; t += threads / parts) {
        const eight key = *(const eight *)(keys + (size_t)t * width + 8 * part);
        float x = 0;
        for (int k = 0; k < 8; k++)
            x += query[8 * part + k] * gp_from_half(key.v[k]);
        products[t * parts + part] = x;
    }
    __syncthreads();
    float most = -INFINITY;
    for (int t = me; t <= now; t += threads) {
        float x = 0;
        for (int k = 0; k < parts; k++)
            x += products[t * parts + k];
        score[t] = x;
        most = fmaxf(most, x);
    }
    sums[me] = most;
    for (int half = threads / 2; half; half /= 2) {
        __syncthreads();
        if (me < half)
            sums[me] = fmaxf(sums[me], sums[me + half]);
    }
    __syncthreads();
    most = sums[0];
    __syncthreads();

    // Four elements of a value a thread, positions in turns; and the sum of the weights.
    const int quads = size / 4, quad = me % quads, turns = threads / quads;
    float x[5] = { 0, 0, 0, 0, 0 };
#pragma unroll 4
    for (int t = me / quads; t <= now; t += turns) {
        const four v = *(const four *)(values + (size_t)t * width + 4 * quad);
        const float weight = expf(score[t] - most);
        for (int k = 0; k < 4; k++)
            x[k] += weight * gp_from_half(v.v[k]);
        x[4] += weight;
    }
    for (int k = 0; k < 5; k++)
        sums[k * threads + me] = x[k];
    for (int half = threads / 2; half >= quads; half /= 2) {
        __syncthreads();
        if (me < half)
            for (int k = 0; k < 5; k++)
                sums[k * threads + me] += sums[k * threads + me + half];
    }
    if (me < quads)
        for (int k = 0; k < 4; k++)
            seen[sequence * width + from + 4 * quad + k] = gp_to_half(sums[k * threads + me] / sums[4 * threads + me]);
}
