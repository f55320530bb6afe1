/* turn.c - see turn.h. */
#include <stdint.h>
#include <string.h>
#include "turn.h"

gp_turn gp_turn_for(int orientation, ptrdiff_t w, ptrdiff_t h)
{
    const gp_turn turns[9] = {
        [1] = { 0, 1, w },                      [2] = { w - 1, -1, w },
        [3] = { w * h - 1, -1, -w },            [4] = { w * (h - 1), 1, -w },
        [5] = { 0, h, 1 },                      [6] = { h - 1, h, -1 },
        [7] = { w * h - 1, -h, -1 },            [8] = { h * (w - 1), -h, 1 },
    };
    return turns[orientation];
}

void gp_turn_rows(gp_turn t, const void *from, ptrdiff_t rows, ptrdiff_t y, ptrdiff_t w, size_t pixel, void *to)
{
    enum { STRIP = 16 };
    const ptrdiff_t size = (ptrdiff_t)pixel, end = y + rows;
    const char *strip = from;
    for (ptrdiff_t n; y < end; y += n, strip += n * w * size) {
        n = end - y < STRIP ? end - y : STRIP;
        for (ptrdiff_t x = 0; x < w; x++) {
            const char *p = strip + x * size;
            char *at = (char *)to + (t.origin + x * t.right + y * t.down) * size;
            for (ptrdiff_t i = 0; i < n; i++, p += w * size, at += t.down * size)
                memcpy(at, p, pixel);
        }
    }
}

/* In the order of bytes that EXIF says. */
static uint32_t number(const unsigned char *p, int bytes, int big)
{
    uint32_t v = 0;
    for (int i = 0; i < bytes; i++)
        v = v << 8 | p[big ? i : bytes - 1 - i];
    return v;
}

int gp_turn_of_exif(const unsigned char *p, size_t n, int before)
{
    enum { TAG = 0x0112, SHORT = 3, ENTRY = 12 };
    if (n < 8)
        return before;
    int big = !memcmp(p, "MM", 2);
    size_t at = number(p + 4, 4, big);
    if ((!big && memcmp(p, "II", 2)) || at > n || n - at < 2)
        return before;
    unsigned entries = number(p + at, 2, big);
    for (at += 2; entries-- && n - at >= ENTRY; at += ENTRY) {
        uint32_t value = number(p + at + 8, 2, big);
        if (number(p + at, 2, big) == TAG && number(p + at + 2, 2, big) == SHORT && value >= 1 && value <= 8)
            return (int)value;
    }
    return before;
}
