// Carts with a pole on each, a thread a cart: one step, which is then remembered; and steps of the memory, at random.
//
// The equations are those of Barto, Sutton and Anderson, "Neuronlike adaptive elements that can solve difficult
// learning control problems" (1983), with the numbers of Gymnasium's CartPole-v1: an episode ends where the cart is
// 2.4 m from the middle, or the pole 12 degrees from upright, and is cut off after 500 steps.
enum { CART = 5, STEP = 12, MOST = 500 };

// Random numbers come from no generator with a state, but from what they are for: the seed, the frame, which cart it
// is, and the how many-th number of that. So they are the same whatever runs at the same time. The function is "pcg"
// of Jarzynski and Olano, "Hash functions for GPU rendering" (2020).
__device__ static unsigned mixed(unsigned x)
{
    x = x * 747796405u + 2891336453u;
    x = (x >> ((x >> 28) + 4) ^ x) * 277803737u;
    return x >> 22 ^ x;
}

__device__ static unsigned drawn(unsigned seed, long long frame, int i, int which)
{
    return mixed(mixed(mixed(mixed(seed) ^ (unsigned)frame) ^ (unsigned)i) ^ (unsigned)which);
}

// From 0 up to 1, which it never is.
__device__ static float fraction(unsigned drawn)
{
    return (drawn >> 8) * (1.0f / (1 << 24));
}

extern "C" __global__ void cartpole(const float *worth, const float *epsilon, float *carts, int *ages, float *memory,
                                    float *ends, const gp_frame_info *frame, unsigned seed, int count, int keep)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    float *cart = carts + CART * i, *step = memory + STEP * ((frame->index * count + i) % keep);

    // the action that is worth more, or sometimes any: 0 pushes to the left, 1 to the right
    int action = worth[2 * i + 1] > worth[2 * i];
    if (fraction(drawn(seed, frame->index, i, 0)) < *epsilon)
        action = drawn(seed, frame->index, i, 1) >> 31;

    float place = cart[0], speed = cart[1], angle = cart[2], turn = cart[3];
    float s = sinf(angle), c = cosf(angle);
    float push = ((action ? 10.0f : -10.0f) + 0.05f * turn * turn * s) / 1.1f;
    float turning = (9.8f * s - c * push) / (0.5f * (4.0f / 3 - 0.1f * c * c / 1.1f));
    float now[CART] = { place + 0.02f * speed, speed + 0.02f * (push - 0.05f * turning * c / 1.1f),
                        angle + 0.02f * turn, turn + 0.02f * turning, 1 };
    int age = ages[i] + 1;
    bool fell = fabsf(now[0]) > 2.4f || fabsf(now[2]) > 0.20943951f, over = fell || age == MOST;

    for (int k = 0; k < CART; k++) {
        step[k] = k < 4 ? cart[k] : 1;
        step[CART + k] = now[k];
        // the next episode begins near the middle
        cart[k] = over && k < 4 ? fraction(drawn(seed, frame->index, i, 2 + k)) * 0.1f - 0.05f : now[k];
    }
    step[2 * CART] = action;
    step[2 * CART + 1] = fell;              // an episode that was cut off would have gone on
    ages[i] = over ? 0 : age;
    ends[2 * i] = over;
    ends[2 * i + 1] = over ? age : 0;
}

// Which of the steps that are remembered so far a step of training is about.
extern "C" __global__ void draw(const long long *frame, int *steps, unsigned seed, int update, int carts, int keep,
                                int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        steps[i] = drawn(seed, *frame, i, 6 + update) % (unsigned)min((*frame + 1) * carts, (long long)keep);
}
