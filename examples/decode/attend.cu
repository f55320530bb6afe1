// attend.cu - attention of one step: a block is one head of one sequence. It puts the key and the value of this step into
// the cache, and makes the mean of all values up to this one, weighted by softmax(query . key / sqrt(size)).
//
// Arrays: qkv [sequences, 3, heads, size], seen [sequences, heads, size], cache [2, sequences, steps, heads, size].
// `size` / 8 is a power of two, at most 32; a block has whole warps, and at least `size` threads.
struct alignas(16) eight { unsigned pair[4]; };

static __device__ void widen(float *to, const eight &from)
{
    for (int k = 0; k < 4; k++)
        gp_from_halves(to + 2 * k, from.pair[k]);
}

extern "C" __global__ void attend(const gp_half *qkv, gp_half *seen, gp_half *cache, const gp_frame_info *frame, int steps,
                                  int size)
{
    gp_grid_next();
    gp_grid_wait();
    const int me = threadIdx.x, lane = me % 32, warp = me / 32, warps = blockDim.x / 32, width = gridDim.x * size;
    const int now = (unsigned)frame->index % steps;
    const size_t sequence = blockIdx.y, from = blockIdx.x * size, row = (size_t)steps * width;
    gp_half *keys = cache + sequence * row + from, *values = keys + gridDim.y * row;
    const gp_half *query = qkv + sequence * 3 * width + from, *new_key = query + width, *new_value = new_key + width;
    if (me < size) {
        keys[(size_t)now * width + me] = new_key[me];
        values[(size_t)now * width + me] = new_value[me];
    }

    // `lanes` threads side by side have eight elements each of a position, and make four positions in a turn: they read
    // all of these before they compute. Those of this step are not in the cache yet. What a position weighs depends on the
    // highest score: when a higher one comes, what there is so far is made smaller.
    const int lanes = size / 8, part = 8 * (me % lanes), group = me / lanes, groups = blockDim.x / lanes;
    float q[8], x[8] = {}, most = -INFINITY, total = 0, wide[8];
    widen(q, *(const eight *)(query + part));
    for (int first = group; first - group <= now; first += 4 * groups) {
        eight key[4] = {}, value[4] = {};
        float score[4], highest = most;
        for (int j = 0; j < 4; j++) {
            const int t = first + j * groups;
            if (t > now)
                continue;
            key[j] = *(const eight *)((t == now ? new_key : keys + (size_t)t * width) + part);
            value[j] = *(const eight *)((t == now ? new_value : values + (size_t)t * width) + part);
        }
        for (int j = 0; j < 4; j++) {
            score[j] = 0;
            widen(wide, key[j]);
            for (int k = 0; k < 8; k++)
                score[j] += q[k] * wide[k];
            for (int by = lanes / 2; by; by /= 2)
                score[j] += __shfl_xor_sync(~0u, score[j], by);
            score[j] = first + j * groups <= now ? score[j] * rsqrtf((float)size) : -INFINITY;
            highest = fmaxf(highest, score[j]);
        }
        if (highest == -INFINITY)
            continue;
        const float shrink = __expf(most - highest);
        most = highest, total *= shrink;
        for (int k = 0; k < 8; k++)
            x[k] *= shrink;
        for (int j = 0; j < 4; j++) {
            if (first + j * groups > now)
                continue;
            const float weight = __expf(score[j] - highest);
            total += weight;
            widen(wide, value[j]);
            for (int k = 0; k < 8; k++)
                x[k] += weight * wide[k];
        }
    }

    // All positions of a warp, then those of all warps.
    GP_SHARED(float, sums);                        // [warps][size], [warps], [warps]
    float *totals = sums + warps * size, *mosts = totals + warps, highest = most;
    for (int by = lanes; by < 32; by *= 2)
        highest = fmaxf(highest, __shfl_xor_sync(~0u, highest, by));
    const float shrink = most == -INFINITY ? 0 : __expf(most - highest);
    total *= shrink;
    for (int by = lanes; by < 32; by *= 2)
        total += __shfl_xor_sync(~0u, total, by);
    for (int k = 0; k < 8; k++) {
        x[k] *= shrink;
        for (int by = lanes; by < 32; by *= 2)
            x[k] += __shfl_xor_sync(~0u, x[k], by);
        if (lane < lanes)
            sums[warp * size + part + k] = x[k];
    }
    if (!lane)
        totals[warp] = total, mosts[warp] = highest;
    __syncthreads();
    if (me >= size)
        return;
    float all = 0, sum = 0;
    for (int w = 0; w < warps; w++)
        highest = fmaxf(highest, mosts[w]);
    for (int w = 0; w < warps; w++) {
        const float weight = __expf(mosts[w] - highest);
        all += weight * totals[w], sum += weight * sums[w * size + me];
    }
    seen[sequence * width + from + me] = gp_to_half(sum / all);
}
GP_EARLY(attend)                   // it is launched while the kernel before still runs, and waits for that itself
