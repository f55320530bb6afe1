/* test_err.c - how an error is shown: the line, and what is below it; what stays of too many. */
#include <errno.h>
#include "base/why.h"
#include "suite.h"

/* What is printed of an error at `col` of the first line, without the first line. */
static char *shown(const char *text, int col, int len)
{
    static char out[2000];
    memset(out, 0, sizeof out);
    gp_err e = { .code = GP_E_SPEC, .at = { "f", 1, col, len }, .msg = "wrong" };
    FILE *f = fmemopen(out, sizeof out - 1, "w");
    ck_assert_ptr_nonnull(f);
    gp_err_print(f, &e, "f", text, strlen(text), false);
    fclose(f);
    char *line = strchr(out, '\n');
    ck_assert_ptr_nonnull(line);
    return line + 1;
}

TEST(a_short_line)
{
    ck_assert_str_eq(shown("one: two\nthree\n", 6, 3), "    1 | one: two\n      |      ^~~\n");
    ck_assert_str_eq(shown("\tx: y", 2, 1), "    1 | \tx: y\n      | \t^\n");
    ck_assert_str_eq(shown("\xc3\xa4\xc3\xb6: y", 7, 9), "    1 | \xc3\xa4\xc3\xb6: y\n      |     ^\n");
}

/* A long line of x and of characters of two bytes, `at` in it. */
static const struct { const char *fill; int at; } longs[] = {
    { "x", 0 }, { "x", 40 }, { "x", 80 }, { "x", 81 }, { "x", 250 }, { "x", 498 }, { "x", 499 },
    { "\xc3\xa4", 0 }, { "\xc3\xa4", 41 }, { "\xc3\xa4", 100 }, { "\xc3\xa4", 249 },
};

TEST_EACH(a_long_line, longs)
{
    size_t width = strlen(longs[_i].fill);
    char text[1200] = "", *got;
    for (int i = 0; i < 500; i++)
        strcat(text, i == longs[_i].at ? "@" : longs[_i].fill);
    got = shown(text, longs[_i].at * (int)width + 1, 1);
    char *caret = strchr(got, '^'), *second = strchr(got, '\n') + 1;
    ck_assert_ptr_nonnull(caret);
    ck_assert_int_lt((int)(second - got), 190);
    ck_assert_int_gt((int)(second - got), 160 / 2);
    int column = 0;                    /* of the '@', in characters */
    for (const char *s = got; *s != '@'; s++) {
        ck_assert_int_ne(*s, '\n');
        column += ((unsigned char)*s & 0xc0) != 0x80;
    }
    ck_assert_int_eq((int)(caret - second), column);
    ck_assert_int_eq(!strncmp(got, "    1 | ...", 11), longs[_i].at * (int)width > 80);
    ck_assert_int_eq(!strncmp(second - 4, "...\n", 4), longs[_i].at < 500 - 100);
}

/* What steers a terminal is shown, not sent; the caret stands where it is. */
static const struct { const char *text; int col, len; const char *shown; } steering[] = {
    { "a\x1b]0;x\x07: y", 9, 1, "    1 | a\\x1b]0;x\\x07: y\n      |               ^\n" },
    { "\x1b[31m\xc2\x85:\ry\r\n", 1, 7, "    1 | \\x1b[31m\\u0085:\\x0dy\n      | ^~~~~~~~~~~~~~\n" },
    { "k: \xe2\x80\xae z\xe2\x81\xa6", 4, 1, "    1 | k: \\u202e z\\u2066\n      |    ^~~~~~\n" },
    { "k:\xc2\xa0v\xe2\x80\x8b \xe2\x80\x9c", 3, 1, "    1 | k:\\u00a0v\\u200b \xe2\x80\x9c\n      |   ^~~~~~\n" },
    { "k: \xff\xc0\x80\xed\xa0\x80", 5, 1, "    1 | k: \\xff\\xc0\\x80\\xed\\xa0\\x80\n      |        ^~~~\n" },
    { "\x1b\tx", 3, 1, "    1 | \\x1b\tx\n      |     \t^\n" },
    { "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 \x7f", 13, 1,
      "    1 | \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 \\x7f\n      |       ^~~~\n" },
};

TEST_EACH(steers, steering)
{
    ck_assert_str_eq(shown(steering[_i].text, steering[_i].col, steering[_i].len), steering[_i].shown);
}

/* Of a mistake in a pipeline what is not seen, or looks like another, is named once, wherever it was found. */
TEST(odd_characters)
{
    gp_errs errs = { 0 }, again = { 0 };
    gp_fail(&errs, GP_E_SPEC, (gp_loc){ 0 }, "no '\xc2\xa0x\xc2\xa0', '\xe2\x80\x9cy\xc3\xa4'");
    gp_fail(&errs, GP_E_RUN, (gp_loc){ 0 }, "no '\xc2\xa0x'");
    gp_errs_add(&again, &errs);
    ck_assert_str_eq(again.e[0].msg, "no '\xc2\xa0x\xc2\xa0', '\xe2\x80\x9cy\xc3\xa4' (U+00A0: no-break space) (U+201C: "
                     "left double quotation mark)");
    ck_assert_str_eq(again.e[1].msg, "no '\xc2\xa0x'");
}

/* Nor in the message and the file's name; lines of a message stand below its first. */
TEST(a_hostile_message)
{
    static const struct { gp_code code; const char *file, *msg, *shown; } cases[] = {
        { GP_E_SPEC, "\x1b[2Ja\nb.yaml", "no '\x1b[2J\x80\t'", "\\x1b[2Ja\\x0ab.yaml: error: no '\\x1b[2J\\x80\t'\n" },
        { GP_E_RUN, NULL, "one\n  two\nf.yaml: ok\n", "gpipe: error: one\n  two\n      f.yaml: ok\n\n" },
        { GP_E_NOTE, NULL, "one\r\xe2\x80\xaa", "      one\\x0d\\u202a\n" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gp_err e = { .code = cases[i].code, .at = { .file = cases[i].file } };
        strcpy(e.msg, cases[i].msg);
        char *text;
        size_t n;
        FILE *f = open_memstream(&text, &n);
        gp_err_print(f, &e, NULL, NULL, 0, false);
        fclose(f);
        ck_assert_str_eq(text, cases[i].shown);
        free(text);
    }
}

/* A long line of bytes that begin no character, of which no end can be found. */
TEST(no_characters)
{
    for (int n = 159; n < 400; n++) {
        char *text = malloc((size_t)n), *out = NULL;       /* no NUL follows */
        size_t size;
        memset(text, 0x80, (size_t)n);
        for (int col = 1; col <= n; col += 40) {
            gp_err e = { .code = GP_E_SPEC, .at = { "f", 1, col, 1 }, .msg = "wrong" };
            FILE *f = open_memstream(&out, &size);
            gp_err_print(f, &e, "f", text, (size_t)n, false);
            fclose(f);
            ck_assert_msg(size < 1600 && strstr(out, "\n    1 | "), "%d bytes, at %d: %s", n, col, out);
            free(out);
        }
        free(text);
    }
}

static const struct { const char *word, *candidate; bool near; } words[] = {
    { "blurr", "blur", true }, { "blru", "blur", true }, { "x", "y", false }, { "X", "x", true }, { "x", "x1", true }, { "x", "yz", false },
    { "threshhold", "threshold", true }, { "scale", "blur", false }, { "a", "abcdef", false },
    { "something", "somewhere", false },
};

TEST_EACH(near_words, words)
{
    gp_near near = GP_NEAR(words[_i].word);
    gp_near_try(&near, words[_i].candidate);
    ck_assert_int_eq(*gp_near_text(&near) != 0, words[_i].near);
}

/* Adds n of a code; the text is that code's number. */
static void add(gp_errs *errs, gp_code code, int n)
{
    for (int i = 0; i < n; i++)
        gp_fail(errs, code, (gp_loc){ 0 }, "%d", (int)code);
}

/* What stays of a table that is too small. A warning is given up with its notes, for an error alone: a note takes no
 * other's place, and is never left behind a message that it does not belong to. */
TEST(full)
{
    gp_errs e = { .n = 0 };
    add(&e, GP_E_WARN, GP_ERRS_MAX - 2);
    add(&e, GP_E_NOTE, 2);
    add(&e, GP_E_WARN, 1), add(&e, GP_E_NOTE, 2);
    ck_assert_int_eq(e.n, GP_ERRS_MAX);
    ck_assert_int_eq(e.dropped, 1);
    add(&e, GP_E_STALL, 1), add(&e, GP_E_NOTE, 3), add(&e, GP_E_WARN, 1), add(&e, GP_E_NOTE, 1);
    ck_assert_int_eq(e.failed, 1);
    ck_assert_int_eq(gp_errs_exit(&e), 5);
    int warnings = 0, i = 0;
    for (; e.e[i].code == GP_E_WARN; i++)
        warnings++;
    ck_assert_int_eq(warnings, GP_ERRS_MAX - 1 - e.dropped);
    ck_assert(warnings > 0 && e.e[i].code == GP_E_STALL && e.e[i + 4].code == GP_E_WARN);
    for (int k = 1; k <= 5; k++)
        ck_assert(k == 4 || e.e[i + k].code == GP_E_NOTE);
    ck_assert_int_eq(e.n, i + 6);
    add(&e, GP_E_RUN, 2 * GP_ERRS_MAX);
    ck_assert_int_eq(e.n, GP_ERRS_MAX);
    ck_assert(e.e[0].code == GP_E_STALL && e.e[3].code == GP_E_NOTE && e.e[4].code == GP_E_RUN);
    ck_assert_int_eq(e.dropped, GP_ERRS_MAX + 2 * GP_ERRS_MAX - (GP_ERRS_MAX - 4));

    gp_errs all = { .n = 0 };
    gp_errs_add(&all, &e);
    ck_assert_int_eq(all.failed, e.failed);
    ck_assert_int_eq(gp_errs_exit(&all), 5);
}

/* What is wrong is said at the end: of a long text the middle is left out. */
TEST(a_long_text)
{
    gp_errs e = { .n = 0 };
    size_t room = sizeof e.e[0].msg;
    for (size_t n = room - 20; n < 40000; n = n < room + 20 ? n + 1 : 2 * n) {
        OWNED char *name = malloc(n + 1);
        memset(name, 'x', n);
        name[n] = 0;
        e.n = 0;
        gp_fail(&e, GP_E_SPEC, (gp_loc){ 0 }, "'%s' is wrong", name);
        const char *msg = e.e[0].msg;
        bool fits = n + 11 < room;
        ck_assert_int_eq(strlen(msg), fits ? n + 11 : room - 1);
        ck_assert_int_eq(strstr(msg, "x...x") != NULL, !fits);
        ck_assert_int_eq(strncmp(msg, "'xxx", 4), 0);
        ck_assert_msg(n > 16000 || !strcmp(msg + strlen(msg) - 10, "' is wrong"), "%s", msg);
    }
    char name[1200] = "";              /* no half of a character is left */
    for (int i = 0; i < 500; i++)
        strcat(name, "\xc3\xa4");
    for (int i = 0; i < 2; i++) {
        e.n = 0;
        gp_fail(&e, GP_E_SPEC, (gp_loc){ 0 }, "%s%s", i ? "x" : "", name);
        const char *dots = strstr(e.e[0].msg, "...");
        ck_assert_ptr_nonnull(dots);
        ck_assert_int_eq((unsigned char)dots[-1], 0xa4);
        ck_assert_int_eq((unsigned char)dots[3], 0xc3);
    }
}

TEST(a_note)
{
    gp_err e = { .code = GP_E_NOTE, .at = { "f", 1, 1, 1 }, .msg = "who waits" };
    char *text;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    gp_err_print(f, &e, "f", "line", 4, true);
    fclose(f);
    ck_assert_str_eq(text, "      who waits\n");
    free(text);
}

/* What the machine is short of is its own exit code, through whatever texts the cause goes; the words of others are
 * not. */
TEST(codes_of_causes)
{
    const struct { const char *why; gp_code code; const char *msg; } cases[] = {
        { "cannot be read: " GP_WHY_MEMORY, GP_E_RESOURCE, "cannot be read: does not fit in memory" },
        { GP_WHY_MEMORY " or so", GP_E_RESOURCE, "does not fit in memory or so" },
        { gp_strerror(ENOMEM), GP_E_RESOURCE, "Cannot allocate memory" },
        { gp_strerror(ENFILE), GP_E_RESOURCE, "Too many open files in system" },
        { gp_strerror(EACCES), GP_E_SPEC, "Permission denied" },
        { "#error Too many open files", GP_E_SPEC, "#error Too many open files" },
        { "Cannot allocate memory", GP_E_SPEC, "Cannot allocate memory" },
        { "does not fit in memory", GP_E_SPEC, "does not fit in memory" }, { "", GP_E_SPEC, "" },
        { "\1\1a\1\2", GP_E_SPEC, "\1\1a\1\2" }, { "a\xff\xff\3c\xff", GP_E_SPEC, "a\xff\xff\3c\xff" },
    };
    static const gp_code kept[] = { GP_E_WARN, GP_E_NOTE, GP_E_STALL, GP_E_MISMATCH, GP_E_BUG,
                                    GP_E_CLOSED };
    static const struct { int error; const char *begin, *rest; } shortages[] = {
        { EMFILE, "no: Too many open files ('ulimit -n' is ", ")" },
        { EAGAIN, "no: Resource temporarily unavailable ('ulimit -u' is ", ", 'ulimit -v' is " },
    };
    static const gp_code changed[] = { GP_E_RUN, GP_E_USAGE, GP_E_SPEC, GP_E_RESOURCE };
    gp_errs e = { .n = 0 };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++, e = (gp_errs){ .n = 0 }) {
        gp_fail(&e, GP_E_SPEC, (gp_loc){ 0 }, "%s", cases[i].why);
        ck_assert_int_eq(e.e[0].code, cases[i].code);
        ck_assert_str_eq(e.e[0].msg, cases[i].msg);
    }
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++, e = (gp_errs){ .n = 0 }) {
        gp_fail(&e, kept[i], (gp_loc){ 0 }, "no: %s", gp_strerror(EMFILE));
        ck_assert_int_eq(e.e[0].code, kept[i]);
        ck_assert_str_eq(e.e[0].msg, "no: Too many open files");
    }
    for (size_t i = 0; i < 2 * sizeof changed / sizeof *changed; i++, e = (gp_errs){ .n = 0 }) {
        gp_errs more = { .n = 0 };
        int k = (int)i % 2;
        gp_fail(&e, changed[i / 2], (gp_loc){ 0 }, "no: %s", gp_strerror(shortages[k].error));
        gp_errs_add(&more, &e);            /* the limit is not said twice */
        ck_assert_int_eq(more.e[0].code, GP_E_RESOURCE);
        ck_assert_ptr_eq(strstr(more.e[0].msg, shortages[k].begin), more.e[0].msg);
        ck_assert(strstr(more.e[0].msg, shortages[k].rest) && more.e[0].msg[strlen(more.e[0].msg) - 1] == ')');
        ck_assert_ptr_eq(strchr(more.e[0].msg, '('), strrchr(more.e[0].msg, '('));
    }
}

TEST_SUITE(err, NULL, NULL, 0)
