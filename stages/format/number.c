/* number.c - see number.h. */
#include <math.h>
#include "base/num.h"
#include "number.h"

bool gp_number_fits(gp_shape *s, const char *opt, const gp_num *v, gp_dtype t)
{
    char text[GP_NUM_TEXT];
    return gp_num_fits(v, t)
        || gp_shape_fail(s, opt, "'%s' is %s, which '%s' does not hold; give another, or %s", opt, gp_num_text(v, text),
                         gp_dtype_name(t), s->nin ? "put a 'cast' before this stage" : "declare another 'dtype'");
}

uint64_t gp_number_bits(const gp_num *v, gp_dtype t)
{
    uint64_t bits = 0;
    gp_num_store(&bits, v, t);
    return bits;
}

bool gp_number_range(gp_shape *s, const gp_floats *range)
{
    if (range->n && range->n != 2)
        return gp_shape_fail(s, "range", "'range' is a list of %d; give [low, high]", range->n);
    return !range->n || (range->v[0] < range->v[1] && isfinite(range->v[1] - range->v[0]))
        || gp_shape_fail(s, "range", "'range' is [%g, %g]: the second must be more than the first", range->v[0],
                         range->v[1]);
}
