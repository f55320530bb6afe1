/* y4m_file.h - the header of a YUV4MPEG2 stream (.y4m), which says what its frames are.
 *
 * A frame is its planes one below the other, as they lie in the file: of W x H pixels 4:2:0 is (3 H / 2, W), 4:2:2 is
 * (2 H, W), 4:4:4 is (3, H, W), mono is (H, W); u8, or u16 for 9 to 16 bits. Pure; errors are as in files.h. */
#pragma once

#include "files.h"

enum { GP_Y4M_LINE = 1024 };           /* bytes that the header, or the line before a frame, may have */

/* As the option `subsampling` counts them, see picture_file.h. */
enum { GP_Y4M_420, GP_Y4M_422, GP_Y4M_444, GP_Y4M_MONO };
/* Where chroma lies in 4:2:0: between four pixels; beside the left ones; on them, the way DV does it; not said. */
enum { GP_Y4M_JPEG, GP_Y4M_MPEG2, GP_Y4M_PALDV, GP_Y4M_UNSAID };
#define GP_Y4M_SITING "jpeg|mpeg2|paldv|none"
/* The range of values of 8 bits: not said; from 16, to 235 of luma and to 240 of colors; all 256. */
enum { GP_Y4M_RANGE_UNSAID, GP_Y4M_LIMITED, GP_Y4M_FULL };

typedef struct gp_y4m {
    int64_t width, height;
    int subsampling, siting, bits, range;
    int64_t rate[2], aspect[2];        /* numerator, denominator; 0: not said */
} gp_y4m;

/* The first line, without its newline. */
bool gp_y4m_parse(const char *line, size_t n, gp_y4m *v, char err[GP_WHY]);

/* The type of its frames. */
bool gp_y4m_type(const gp_y4m *v, gp_type *frame, char err[GP_WHY]);

/* Are its values of the range that an option says, counted so? Where that says none, what has colors may not say that
 * it is full. */
bool gp_y4m_has_range(const gp_y4m *v, int range, char err[GP_WHY]);

/* The other way: width and height of frames of such a type, where subsampling and bits are known. */
bool gp_y4m_take(gp_y4m *v, const gp_type *frame, char err[GP_WHY]);

/* The first line of a stream, with its newline; its length. */
size_t gp_y4m_header(const gp_y4m *v, char to[GP_Y4M_LINE]);

/* "30000/1001", "30000:1001", "25", "12.5" -> a ratio above 0. */
bool gp_y4m_ratio(const char *text, int64_t ratio[2]);

/* "640 x 480, 4:2:0" */
char *gp_y4m_text(const gp_y4m *v, char buf[80]);
