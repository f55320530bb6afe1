/* tiff_axes.c - what microscopes say of the pages of a TIFF, see tiff_file.h: which channels, slices and times they
 * are.
 *
 * OME-XML and ImageJ say it in the description of the first page. Pages that are a frame have to lie along whole axes,
 * or parts of one: then no channel comes where a slice is expected. What is said of other files, or wrong, is not used.
 * */
#include <stdlib.h>
#include <string.h>
#include "tiff_file.h"

enum { AXES = 3 };

typedef struct axes { char name[AXES + 1]; int64_t size[AXES]; } axes;         /* the first changes from page to page */

static const char *plural_of(char axis)
{
    return axis == 'C' ? "channels" : axis == 'Z' ? "slices" : "times";
}

/* The number behind `name`, before `end`; 1 where there is none. */
static int64_t number_behind(const char *text, const char *end, const char *name)
{
    const char *at = strstr(text, name);
    long long n = at && at < end ? strtoll(at + strlen(name), NULL, 10) : 1;
    return n >= 1 && n <= INT32_MAX ? n : 1;
}

/* <Pixels DimensionOrder="XYCZT" SizeC="2" ...> */
static bool of_ome(const char *text, axes *a)
{
    const char *tag = strstr(text, "<OME") ? strstr(text, "<Pixels") : NULL, *end = tag ? strchr(tag, '>') : NULL;
    const char *order = tag ? strstr(tag, " DimensionOrder=\"XY") : NULL;
    if (!end || !order || order >= end)
        return false;
    memcpy(a->name, order + 19, AXES);
    if (strspn(a->name, "CZT") != AXES || a->name[0] == a->name[1] || a->name[1] == a->name[2] || a->name[0] == a->name[2])
        return false;
    for (int i = 0; i < AXES; i++)
        a->size[i] = number_behind(tag, end, a->name[i] == 'C' ? " SizeC=\"" : a->name[i] == 'Z' ? " SizeZ=\"" : " SizeT=\"");
    return true;
}

static bool of_imagej(const char *text, axes *a)
{
    const char *end = text + strlen(text);
    if (strncmp(text, "ImageJ=", 7))
        return false;
    *a = (axes){ "CZT", { number_behind(text, end, "\nchannels="), number_behind(text, end, "\nslices="),
                          number_behind(text, end, "\nframes=") } };
    return true;
}

/* Finds the axes of the file, from the description of its first page. */
static bool find_axes(gp_tiff_handle *h, const gp_tiff_pages *pages, axes *a)
{
    char err[GP_WHY];
    gp_tiff_page p;
    bool found = gp_tiff_go_to(h, pages->at ? pages->at[0] : h->first, &p, err)
              && (of_ome(p.text, a) || of_imagej(p.text, a));
    int64_t all = 1;
    for (int i = 0; found && i < AXES; i++) {
        if (a->name[i] == 'C' && a->size[i] % p.samples == 0)
            a->size[i] /= p.samples;   /* a page has several */
        all = all > INT32_MAX ? all : all * a->size[i];
    }
    return found && all == pages->whole.dim[0];
}

bool gp_tiff_cuts(const gp_rows_head *h, const gp_rowsfile_how *how, int64_t rows, char err[GP_WHY])
{
    gp_tiff_handle f = { .fd = -1, .head = h, .size = h->size };
    gp_tiff_pages pages = { .at = NULL };
    axes a = { "", { 0 } };
    bool known = gp_tiff_begin(&f, err) && gp_tiff_find_pages(&f, how->keep_orientation, &pages, err)
              && find_axes(&f, &pages, &a);
    gp_tiff_end(&f);
    free(pages.at);
    int64_t left = rows;
    for (int i = 0; known && i < AXES && left > 1; i++) {
        if (a.size[i] % left && left % a.size[i])
            return gp_why(err, "has in its pages %lld %s, then %lld %s, then %lld %s: %lld pages are no frame of one of these",
                          (long long)a.size[0], plural_of(a.name[0]), (long long)a.size[1], plural_of(a.name[1]),
                          (long long)a.size[2], plural_of(a.name[2]), (long long)rows);
        left = a.size[i] % left ? left / a.size[i] : 1;
    }
    return true;
}
