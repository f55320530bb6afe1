// attend.cu - attention of one step: a block is one head of one sequence. It puts the key and the value of this step into
// the cache, and makes the mean of all values up to this one, weighted by softmax(query . key / sqrt(size)).
//
// Arrays: qkv [sequences, 3, heads, size], seen [sequences, heads, size], cache [2, sequences, steps, heads, size].
// The number of threads is a power of two, at least `size` / 4, which is a power of two, too.
struct alignas(16) eight { unsigned pair[4]; };
struct alignas(8) four { unsigned pair[2]; };

extern "C" __global__ void attend(const gp_half *qkv, gp_half *seen, gp_half *cache, const gp_frame_info *frame, int steps,
                                  int size)
{
    gp_grid_next();
    gp_grid_wait();
    const int me = threadIdx.x, threads = blockDim.x, width = gridDim.x * size, now = (unsigned)frame->index % steps;
    const size_t sequence = blockIdx.y, from = blockIdx.x * size, row = (size_t)steps * width;
    gp_half *keys = cache + sequence * row + from, *values = keys + gridDim.y * row;
    GP_SHARED(float, query);                       // [size]
    float *sums = query + size;                    // [6][threads]
    float *score = sums + 6 * threads;             // [steps]
    float *products = score + steps;               // [steps][size / 8]
    const gp_half *new_key = qkv + sequence * 3 * width + width + from, *new_value = new_key + width;

    // Eight elements of a key a thread, four of a value, positions in turns: those that each is the first to read come
    // while all else is computed. Those of this step are not in the cache yet.
    const int parts = size / 8, part = me % parts, quads = size / 4, quad = me % quads;
    const int key0 = me / parts, keys_apart = threads / parts, value0 = me / quads, values_apart = threads / quads;
    auto key_of = [&](int t) { return *(const eight *)((t == now ? new_key : keys + (size_t)t * width) + 8 * part); };
    auto value_of = [&](int t) { return *(const four *)((t == now ? new_value : values + (size_t)t * width) + 4 * quad); };
    eight key[4];
    four value[8];
    for (int j = 0; j < 4; j++)
        if (key0 + j * keys_apart <= now)
            key[j] = key_of(key0 + j * keys_apart);
    for (int j = 0; j < 8; j++)
        if (value0 + j * values_apart <= now)
            value[j] = value_of(value0 + j * values_apart);
    for (int i = me; i < size; i += threads) {
        query[i] = gp_from_half(new_key[i - width]) * rsqrtf((float)size);
        keys[(size_t)now * width + i] = new_key[i];
        values[(size_t)now * width + i] = new_value[i];
    }
    __syncthreads();

    // query . key, of eight elements, and then of all of a position.
    auto multiply = [&](int t, const eight &of) {
        float x = 0, two[2];
        for (int k = 0; k < 4; k++) {
            gp_from_halves(two, of.pair[k]);
            x += query[8 * part + 2 * k] * two[0] + query[8 * part + 2 * k + 1] * two[1];
        }
        products[t * parts + part] = x;
    };
    for (int j = 0; j < 4; j++)
        if (key0 + j * keys_apart <= now)
            multiply(key0 + j * keys_apart, key[j]);
    for (int t = key0 + 4 * keys_apart; t <= now; t += keys_apart)
        multiply(t, key_of(t));
    __syncthreads();
    for (int t = me; t <= now; t += threads) {
        score[t] = 0;
        for (int k = 0; k < parts; k++)
            score[t] += products[t * parts + k];
    }
    __syncthreads();

    // A thread's sum of values, each weighted by exp(score - most), and behind them the sum of the weights: when a higher
    // score comes, what there is so far is made smaller.
    float most = -INFINITY, x[5] = { 0, 0, 0, 0, 0 };
    auto add = [&](int t, const four &of) {
        const float higher = fmaxf(most, score[t]), shrink = expf(most - higher), weight = expf(score[t] - higher);
        float v[4];
        gp_from_halves(v, of.pair[0]);
        gp_from_halves(v + 2, of.pair[1]);
        for (int k = 0; k < 4; k++)
            x[k] = x[k] * shrink + weight * v[k];
        x[4] = x[4] * shrink + weight;
        most = higher;
    };
    for (int j = 0; j < 8; j++)
        if (value0 + j * values_apart <= now)
            add(value0 + j * values_apart, value[j]);
    for (int t = value0 + 8 * values_apart; t <= now; t += values_apart)
        add(t, value_of(t));

    // Halves of the threads are added to the others, until one has all that there is of its elements.
    for (int half = threads / 2; half >= quads; half /= 2) {
        if (me >= half && me < 2 * half) {
            for (int k = 0; k < 5; k++)
                sums[k * threads + me] = x[k];
            sums[5 * threads + me] = most;
        }
        __syncthreads();
        if (me < half && sums[4 * threads + me + half] != 0) {         // else that one had no position
            const float other = sums[5 * threads + me + half], higher = fmaxf(most, other);
            const float shrink = expf(most - higher), weight = expf(other - higher);
            for (int k = 0; k < 5; k++)
                x[k] = x[k] * shrink + sums[k * threads + me + half] * weight;
            most = higher;
        }
    }
    if (me < quads)
        for (int k = 0; k < 4; k++)
            seen[sequence * width + from + 4 * quad + k] = gp_to_half(x[k] / x[4]);
}
GP_EARLY(attend)                   // it is launched while the kernel before still runs, and waits for that itself
