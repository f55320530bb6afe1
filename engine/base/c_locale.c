/* c_locale.c - see c_locale.h. */
#include "base/c_locale.h"

locale_t gp_c_locale_enter(void)
{
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);     /* of glibc: allocates nothing, is never freed */
    return uselocale(c);
}

void gp_c_locale_leave(const locale_t *was)
{
    uselocale(*was);
}
