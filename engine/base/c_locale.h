/* c_locale.h - numbers are read and written with a decimal point, whatever locale the embedding program has set.
 *
 * strtod, printf and Lua go by the locale of their thread. So each public function that reads or formats text, and each
 * thread of the library that does, begins with GP_C_LOCALE. The caller's locale comes back on return. */
#pragma once

#include <locale.h>

/* Gives this thread the C locale; returns the one that it had, for gp_c_locale_leave. No errors: glibc has the C locale
 * built in. */
locale_t gp_c_locale_enter(void);
void gp_c_locale_leave(const locale_t *was);

#define GP_C_LOCALE \
    const locale_t gp_locale_was __attribute__((cleanup(gp_c_locale_leave), unused)) = gp_c_locale_enter()
