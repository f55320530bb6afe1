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

bool gp_number_finite(gp_shape *s, const double range[2])
{
    return isfinite(range[1] - range[0])
        || gp_shape_fail(s, "range", "'range' is [%g, %g]: both, and how far they are apart, must be finite", range[0],
                         range[1]);
}

bool gp_number_range(gp_shape *s, const gp_floats *range)
{
    const double least = 1e-300;           /* 8192 bins, or 256 colors, divided by less could be infinite */
    if (range->n && range->n != 2)
        return gp_shape_fail(s, "range", "'range' is a list of %d; give [low, high]", range->n);
    if (!range->n)
        return true;
    double apart = range->v[1] - range->v[0];
    return gp_number_finite(s, range->v)
        && (apart >= least || gp_shape_fail(s, "range", "'range' is [%g, %g]: the second must be more than the first%s",
                                            range->v[0], range->v[1], apart > 0 ? ", by 1e-300 or more" : ""));
}
