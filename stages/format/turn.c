/* turn.c - see turn.h. */
#include <stdint.h>
#include <string.h>
#include "files.h"
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

int gp_turn_of_exif(const unsigned char *p, size_t n, int before)
{
    enum { TAG = 0x0112, SHORT = 3, ENTRY = 12 };
    if (n < 8)
        return before;
    bool big = !memcmp(p, "MM", 2);
    size_t at = gp_number(p + 4, 4, big);
    if ((!big && memcmp(p, "II", 2)) || at > n || n - at < 2)
        return before;
    unsigned entries = (unsigned)gp_number(p + at, 2, big);
    for (at += 2; entries-- && n - at >= ENTRY; at += ENTRY) {
        uint64_t value = gp_number(p + at + 8, 2, big);
        if (gp_number(p + at, 2, big) == TAG && gp_number(p + at + 2, 2, big) == SHORT && value >= 1 && value <= 8)
            return (int)value;
    }
    return before;
}
