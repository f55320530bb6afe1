/* page.c - REPORT.json TRACE.json PLAN.svg: the page of a report, on stdout. "-": there
 * is none of it. For tests/page.py. */
#include <stdlib.h>
#include <string.h>
#include "cli/report.h"

static char *text_of(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *text = NULL;
    size_t n = 0;
    FILE *to = open_memstream(&text, &n);
    int c;
    if (!f || !to) {
        perror(path);
        exit(1);
    }
    while ((c = getc(f)) != EOF)
        putc(c, to);
    fclose(to);
    fclose(f);
    return text;
}

int main(int argc, char **argv)
{
    char *text[3] = { NULL };
    if (argc != 4)
        return 2;
    for (int i = 0; i < 3; i++)
        if (strcmp(argv[i + 1], "-"))
            text[i] = text_of(argv[i + 1]);
    bool ok = gp_page_write(stdout, text[0], text[1], text[2]) && !fflush(stdout);
    for (int i = 0; i < 3; i++)
        free(text[i]);
    return !ok;
}
