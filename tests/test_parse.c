/* test_parse.c - YAML to nodes: places, aliases, limits, what is refused. */
#include <sys/mman.h>
#include "compile/ir.h"
#include "effort.h"
#include "suite.h"

static gp_arena arena;
static gp_errs errs;

static void setup(void)
{
    arena = (gp_arena){ 0 };
    errs = (gp_errs){ 0 };
}

static void teardown(void)
{
    gp_arena_free(&arena);
}

static gp_spec *parse(const char *text)
{
    return gp_parse(&arena, text, strlen(text), "dir/p.yaml", &errs);
}

static void ck_at(const gp_node *n, int line, int col, int len)
{
    ck_assert_ptr_nonnull(n);
    ck_assert_str_eq(n->at.file, "dir/p.yaml");
    ck_assert_int_eq(n->at.line, line);
    ck_assert_int_eq(n->at.col, col);
    ck_assert_int_eq(n->at.len, len);
}

TEST(places)
{
    gp_spec *s = parse("pipeline: edges\nvars: {dir: 'ph\xc3\xb6tos', gain: 1.5, off: no}\n\nstages:\n"
                       "  - {use: read, path: \"${dir}/*.png\"}\r\n"
                       "  - name: b\n"
                       "    use: gray\n");
    ck_assert_int_eq(errs.n, 0);
    ck_assert_str_eq(s->dir, "dir");
    ck_at(s->root, 1, 1, 1);
    ck_at(s->root->key[1], 2, 1, 4);
    const gp_node *vars = gp_node_get(s->root, "vars");
    ck_assert_int_eq(vars->kind, GP_MAP);
    ck_assert_int_eq(vars->n, 3);
    ck_at(gp_node_get(vars, "dir"), 2, 13, 9);           /* bytes, quotes counted */
    ck_at(gp_node_get(vars, "gain"), 2, 30, 3);
    ck_assert_str_eq(gp_node_get(vars, "off")->text, "no");
    ck_assert(gp_node_get(vars, "dir")->quoted && !gp_node_get(vars, "gain")->quoted);
    const gp_node *stages = gp_node_get(s->root, "stages");
    ck_assert_int_eq(stages->n, 2);
    ck_at(gp_node_get(stages->item[0], "path"), 5, 23, 14);
    ck_at(gp_node_get(stages->item[1], "use"), 7, 10, 4);
    ck_assert_ptr_null(gp_node_get(stages, "use"));
    ck_assert_ptr_null(gp_node_get(vars, "nothing"));
}

/* Where the lines of a block scalar stand; 0: not one by one in the file. */
static const struct { const char *text; int line, col; } blocks[] = {
    { "a: |\n  x\n  y\n", 2, 3 },
    { "b: 1\na: |-  # why\n    x\n      y\n\n    z", 3, 5 },
    { "a: &k |\n\n   \n   x\n", 2, 4 },
    { "a: |2\n    x\n  y\n", 2, 3 },
    { "a: |\r\n  x\r\n\r\n  y\r\n", 2, 3 },
    { "\xc3\xa4: \xc3\xb6\na: |+\n  \xc3\xb6\n\n", 3, 3 },
    { "a: >\n  x\n", 2, 3 },
    { "a: >\n  x\n  y\n", 0, 0 },
    { "a:\n  &k\n  |\n  x\n", 0, 0 },
    { "a: |\n  x\xc2\x85  y\n", 0, 0 },                /* U+0085 ends a line of YAML 1.1 */
    { "a: |\n", 0, 0 },
    { "a: \"x\n\n  y\"\n", 0, 0 },
    { "a: x\n", 0, 0 },
};

TEST_EACH(lines_of_blocks, blocks)
{
    gp_spec *s = parse(blocks[_i].text);
    ck_assert_int_eq(errs.n, 0);
    const gp_node *n = gp_node_get(s->root, "a");
    ck_assert_int_eq(n->line, blocks[_i].line);
    ck_assert_int_eq(n->col, blocks[_i].col);
}

TEST(aliases)
{
    gp_spec *s = parse("a: &a {x: 1, y: 2}\n"
                       "b: &b {y: 3, z: 4}\n"
                       "c: {<<: [*a, *b], x: 9}\n"
                       "d: {x: 8, <<: *b}\n"
                       "e: [*a, *a]\n");
    ck_assert_int_eq(errs.n, 0);
    const gp_node *c = gp_node_get(s->root, "c"), *d = gp_node_get(s->root, "d");
    ck_assert_int_eq(c->n, 3);
    ck_assert_str_eq(gp_node_get(c, "x")->text, "9");
    ck_assert_str_eq(gp_node_get(c, "y")->text, "2");
    ck_assert_str_eq(gp_node_get(c, "z")->text, "4");
    ck_assert_int_eq(d->n, 3);
    const gp_node *e = gp_node_get(s->root, "e");
    ck_assert_ptr_eq(e->item[0], gp_node_get(s->root, "a"));
    ck_assert_ptr_eq(e->item[0], e->item[1]);
}

#define WORD_OF_60 "a_word_of_sixty_characters_a_word_of_sixty_characters_a_word"

/* Text, where the first error is, and how it starts. */
static const struct { const char *text; int line, col; const char *msg; } bad[] = {
    { "", 0, 0, "the file is empty" },
    { "# nothing\n", 0, 0, "the file is empty" },
    { "---\n", 0, 0, "the file is empty" },
    { "- a\n- b\n", 1, 1, "the file is a list; a pipeline is a map" },
    { "\nhello\n", 2, 1, "the file is a single value" },
    { "a: 1\nb: 2\na: 3\n", 3, 1, "key 'a' is given twice, first in line 1" },
    { "a: {x: 1, \"x\": 2}\n", 1, 11, "key 'x' is given twice, first in line 1" },
    { "a: {<<: 1}\n", 1, 9, "'<<' takes a map or a list of maps" },
    { "b: &b 1\na: {<<: [*b]}\n", 1, 4, "'<<' takes a map or a list of maps" },
    { "a: {<<: [[b]]}\n", 1, 10, "'<<' takes a map or a list of maps" },
    { "a: &x {}\nb: {<<: *x, <<: *x}\n", 2, 13, "'<<' appears twice" },
    { "a: &x [*x]\n", 1, 8, "'*x' is inside the '&x' it stands for" },
    { "a: *png\n", 1, 4, "'*png' is a YAML alias, but no anchor '&png' comes before it" },
    { "{[a]: 1}\n", 1, 2, "a key must be a word, not a list" },
    { "? {a: b}\n: 1\n", 1, 3, "a key must be a word, not a map" },
    { "?\n: 1\n", 1, 2, "a key must be a word, not empty" },
    { "a: !!int 3\n", 1, 4, "the tag '!!int' is not needed, as each key says what its value is; delete it" },
    { "a: !x 3\n", 1, 4, "the tag '!x' has no meaning here" },
    { "a: 1\nb:\xc2\xa0" "2\n", 2, 3, "this is no blank, but U+00A0 (no-break space): write a blank, or delete it" },
    { "a:\n  - b: 1\n\xc2\xa0   c: 2\n    d: 3\n", 3, 1, "this is no blank, but U+00A0 (no-break space)" },
    { "a:\n  - b: 1\n  \xe2\x80\x8b  c: 2\n    d: 3\n", 3, 3, "this is no blank, but U+200B (zero-width space)" },
    { "a: x\xe2\x80\x9c\xc2\xa0 b: 1\n", 1, 12, "a ':' does not fit here" },
    { "a: \"x\\0y\"\n", 1, 4, "text cannot hold the character" },
    { "a: 1\n---\nb: 2\n", 2, 1, "a second document starts here" },
    { "a:\n\tb: 1\n", 2, 1, "a tab cannot indent YAML; use spaces" },
    { "a:\n  b: 1\n\tc: 2\n", 3, 1, "a tab cannot indent YAML; use spaces" },
    { "a: b\xff\n", 1, 5, "byte 0xff is not UTF-8 text" },
    { "a: \xc0\xaf\n", 1, 4, "byte 0xc0 is not UTF-8 text" },
    { "a: \xed\xa0\x80\n", 1, 4, "byte 0xed is not UTF-8 text" },
    { "a: \x01\n", 1, 4, "byte 0x01 is not UTF-8 text" },
    { "a: \xef\xbf\xbe\n", 1, 4, "byte 0xef is not UTF-8 text" },        /* U+FFFE */
    { "\xff\xfe" "a", 0, 0, "the file is UTF-16" },
    /* what breaks YAML and needs quotes */
    { "a: *.png\n", 1, 4, "'*' at the start of a value has a meaning of its own" },
    { "a: {path: *.png}\n", 1, 11, "'*' at the start of a value" },
    { "a: {path: %n.png}\n", 1, 11, "'%' cannot start a value in YAML; put quotes" },
    { "a: @x\n", 1, 4, "'@' cannot start a value in YAML; put quotes" },
    { "\xc3\xa4: {path: ${dir}/x}\n", 1, 12, "'${' inside [ ] or { } ends the value before it" },
    { "a: [${x}, 2]\n", 1, 5, "'${' inside [ ] or { }" },
    { "a: [in.shape[1], 2]\n", 1, 13,
      "'[' inside [ ] or { } ends the value before it; put quotes around the whole: \"in.shape[1]\"" },
    { "a: {i32: 2 * in.shape[1] / 3 }\n", 1, 22,
      "'[' inside [ ] or { } ends the value before it; put quotes around the whole: \"2 * in.shape[1] / 3\"" },
    { "a: {x: in.shape[1\n", 1, 16, "'[' inside [ ] or { } ends the value before it; put quotes around the whole value" },
    { "a: {path: ${dir}/x}\n", 1, 11,
      "'${' inside [ ] or { } ends the value before it; put quotes around the whole: \"${dir}/x\"" },
    { "a: [min(a, b), 2]\n", 1, 5, "'min(a' is cut at the comma; put quotes around the whole: \"min(a, b)\"" },
    { "a: {g: max(1, min(2, 3))}\n", 1, 8, "'max(1' is cut at the comma; put quotes around the "
                                          "whole: \"max(1, min(2, 3))\"" },
    { "a: {shape: (8, 3)}\n", 1, 12, "a list is written in [ ]: [8, 3]" },
    { "a: {g: (2 * min(2, 3))}\n", 1, 8, "'(2 * min(2' is cut at the comma; put quotes around the whole" },
    { "a: [(x]\n", 1, 5, "'(x' has a '(' that is not closed" },
    { "a: [1, 2\n", 1, 4, "this '[' is never closed" },
    { "a: [1, 2\nb: 3\n", 2, 2, "expected ',' or ']'; close the '['" },
    { "a: {x: 1\n", 1, 4, "this '{' is never closed" },
    { "a: {x: 1]\n", 1, 9, "expected ',' or '}'; close the '{'" },
    { "a: \"x\n", 1, 4, "this quote is never closed" },
    { "a: \"\\d\"\n", 1, 5, "no such escape" },
    { "a: b: c\n", 1, 5, "a ':' does not fit here" },
    { "a: 1\n  b: 2\n", 2, 4, "a ':' does not fit here" },
    /* at the line that lacks it, which libyaml only knows once it has read on */
    { "a: 1\nb\nc: 2\n", 2, 1, "expected 'key: value'; after 'b' a ':' is missing" },
    { "a: 1\nb c\nc: 2\n", 2, 1, "expected 'key: value'; there is no ': ' here" },
    { "a: 1\nb", 2, 1, "expected 'key: value'" },
    { "a: 1\n" WORD_OF_60, 2, 1, "expected 'key: value'; there is no ': ' here" },
    { "%YAML 1.1\n  ", 1, 1, "expected 'key: value'" },
    { "stages:\n  - use: read\n    path \"x\"\n\n    # why\n    out: a\n", 3, 5, "expected 'key: value'" },
    { "depth: 4\nstages\n  - use: read\n", 2, 1, "expected 'key: value'" },
    { "stages:\n  - use read\n\n    path: x\n", 2, 5, "expected 'key: value'" },
    { "depth 4\r\nstages:\r\n", 1, 1, "expected 'key: value'" },
    { "vars:\n  a:1\n  b: 2\n", 2, 3, "expected 'key: value'" },
    { "stages\n  - {use: read}\n", 1, 1, "expected 'key: value'; after 'stages' a ':' is missing" },
    { "stages\n\n# all\n- use: read\n  path: x\n", 1, 1, "expected 'key: value'; after 'stages' a ':' is missing" },
    { "stages\n- use: read\n  path: x\n- use: discard\n", 1, 1, "expected 'key: value'; after 'stages' a ':' is" },
    { "depth: 4\nstages\n  - use: read\n", 2, 1, "expected 'key: value'; after 'stages' a ':' is missing" },
    { "stages:\n  - use:read\n    path: x\n", 2, 5, "expected 'key: value'; after 'use:' a space is missing" },
    { "- a\n- b\n  c: 1\n", 2, 3, "expected 'key: value'; after 'b' a ':' is missing" },
    { "- a\n  - b: 1\n", 2, 6, "a ':' does not fit here" },
    /* a text of several lines */
    { "code:\n  int f(int a)\n  { return a ? 1 : 2; }\n", 2, 3,
      "expected 'key: value'; a text of several lines needs a '|', as in 'code: |'" },
    { "- use: kernel\n  code:\n\n    int f()\n    {\n      return a ? 1 : 2;\n    }\n", 5, 5,
      "expected 'key: value'; a text of several lines needs a '|', as in 'code: |'" },
    { "- use: kernel\n  code: |\n  int f()\n  { }\n  args: 1\n", 3, 3,
      "indent this further: the lines of a text stand deeper than its key, 'code'" },
    { "vars:\n  x 3\n  y: 4\n", 2, 3, "expected 'key: value'; there is no ': ' here" },
    { "a: b: c\n", 1, 5, "a ':' does not fit here" },
    { "- 5\n- a: b: c\n", 2, 7, "a ':' does not fit here" },
    { "- use: read\n   path: x\n", 2, 8, "a ':' does not fit here" },
    { "a: some text\n  that goes on: here\n", 2, 15, "a ':' does not fit here" },
    { "a:\n  - 1\n  b: 2\n", 3, 3, "expected '- ' here" },
    { "a: \"x\"/y\n", 1, 7, "expected a key here" },
    { "a: - b\n", 1, 4, "a list item '- ' does not fit here" },
};

TEST_EACH(refused, bad)
{
    ck_assert_ptr_null(parse(bad[_i].text));
    ck_assert_int_ge(errs.n, 1);
    const gp_err *e = &errs.e[0];
    ck_assert_msg(!strncmp(e->msg, bad[_i].msg, strlen(bad[_i].msg))
                  && e->at.line == bad[_i].line && e->at.col == bad[_i].col,
                  "%s--> %d:%d: %s\nwant %d:%d: %s", bad[_i].text, e->at.line, e->at.col, e->msg,
                  bad[_i].line, bad[_i].col, bad[_i].msg);
    ck_assert_int_eq(e->code, GP_E_SPEC);
}

/* Nothing is read behind the end of a text, wherever it is cut: it ends where a page does, and the next one
 * cannot be read. */
TEST_EACH(cut_anywhere, bad)
{
    const char *text = bad[_i].text;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), all = strlen(text);
    char *two = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *end = two + page;
    ck_assert(two != MAP_FAILED && !mprotect(end, page, PROT_NONE));
    for (size_t n = 0; n <= all; n++) {
        memcpy(end - n, text, n);
        gp_spec *s = gp_parse(&arena, end - n, n, "dir/p.yaml", &errs);
        ck_assert_msg(s || errs.failed, "neither read nor refused: %.*s", (int)n, text);
        teardown(), setup();
    }
    munmap(two, 2 * page);
}

/* JSON of Python, JavaScript and others has such pairs, where the text is not ASCII. */
TEST(surrogate_pairs)
{
    gp_spec *s = parse("{\"a\": \"x\\ud83d\\ude00\\uD83D\\uDE01 \\\\ud83d \\u00fc\\ue83d\\uee00\", 'b': '\\ud83d\\ude00', c: 1,\n"
                       " \"\\ud834\\udd1e\": [\"\\udbff\\udffd\", \\ud83d\\ude00, \"\xee\xa0\xbd\\ud83d\\ude00\\U0000e83d\\\\ue83d\"]}\n");
    ck_assert_msg(!errs.n, "%s", errs.n ? errs.e[0].msg : "");
    ck_assert_str_eq(gp_node_get(s->root, "a")->text,
                     "x\xf0\x9f\x98\x80\xf0\x9f\x98\x81 \\ud83d \xc3\xbc\xee\xa0\xbd\xee\xb8\x80");
    ck_assert_str_eq(gp_node_get(s->root, "b")->text, "\\ud83d\\ude00");
    ck_at(gp_node_get(s->root, "c"), 1, 87, 1);              /* places are those of the text */
    const gp_node *list = gp_node_get(s->root, "\xf0\x9d\x84\x9e");
    ck_assert(list && list->n == 3);
    ck_assert_str_eq(list->item[0]->text, "\xf4\x8f\xbf\xbd");
    ck_assert_str_eq(list->item[1]->text, "\\ud83d\\ude00");
    ck_assert_str_eq(list->item[2]->text, "\xee\xa0\xbd\xf0\x9f\x98\x80\xee\xa0\xbd\\ue83d");
    ck_assert_int_eq((int)strlen(list->item[2]->text), (int)list->item[2]->len);
}

TEST_LOOP(lone_surrogates, 0, 6)
{
    static const char *const text[] = { "a: \"\\ud83d\"\n", "a: \"\\ude00\\ud83d\"\n", "a: \"\\ud83dx\\ude00\"\n",
                                        "a: \"\\ud83d\\ude00 \\ud83d\"\n", "a: \"\\ud83d\\ude0\"\n",
                                        "a: \"\\\\ud83d\\ude00\"\n" };
    static const int col[] = { 7, 7, 7, 20, 7, 14 };
    ck_assert_ptr_null(parse(text[_i]));
    ck_assert_int_eq(errs.e[0].at.line, 1);
    ck_assert_int_eq(errs.e[0].at.col, col[_i]);
    ck_assert_msg(strstr(errs.e[0].msg, "no character has this number"), "%s", errs.e[0].msg);
}

TEST(commas_in_parens_are_all_reported)
{
    ck_assert_ptr_null(parse("a: [min(a, b), max(c, d)]\na: 1\n"));
    ck_assert_int_eq(errs.n, 3);
}

TEST(deep)
{
    enum { N = 10000 };
    OWNED char *text = malloc(N + 4);
    memset(text, '[', N + 3);
    memcpy(text, "a: ", 3);
    text[N + 3] = 0;
    ck_assert_ptr_null(parse(text));
    ck_assert_str_eq(errs.e[0].msg, "nested more than 64 deep");
}

TEST(bomb)
{
    char text[2000] = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
    for (int i = 1; i < 20; i++) {
        char *end = text + strlen(text);
        int n = sprintf(end, "a%d: &a%d [", i, i);
        for (int j = 0; j < 10; j++)
            n += sprintf(end + n, "*a%d%s", i - 1, j < 9 ? ", " : "]\n");
    }
    ck_assert_ptr_null(parse(text));
    ck_assert_str_eq(errs.e[0].msg, "more than 1000000 values, counting each use of an alias");
}

/* Of n items, what is before them, of each, and behind them; `error`: where the last one has one. */
static const struct { const char *what; int n; const char *begin, *each, *end, *error; } many[] = {
    { "stages", 2000, "stages:\n", "  - {use: gain, name: g%d}\n", "\n", NULL },
    { "stages on one line", 2000, "\"\xc3\xa4\": 1\nstages: [", "{use: gain, name: \xc3\xa4%d}, ", "]\n", NULL },
    { "pairs", 1000, "stages: [", "\"\\ud83d\\ude00 %d\", ", "]\n", NULL },
    { "keys", 2000, "", "k%d: 1\n", "k777: again\n", "key 'k777' is given twice, first in line 778; remove one" },
};

static double parse_many(int n, void *arg)
{
    int of = *(int *)arg;
    OWNED char *text = malloc(64 * (size_t)n + 64);
    char *s = text + sprintf(text, "%s", many[of].begin);
    for (int i = 0; i < n; i++)
        s += sprintf(s, many[of].each, i);
    sprintf(s, "%s", many[of].end);
    errs = (gp_errs){ 0 };
    effort_begin();
    gp_spec *spec = parse(text);
    double took = effort_end();
    if (many[of].error) {
        ck_assert(!spec && !strcmp(errs.e[0].msg, many[of].error));
    } else {
        ck_assert_msg(spec, "%s", errs.e[0].msg);
        const gp_node *stages = gp_node_get(spec->root, "stages");
        ck_assert_int_eq(stages->n, n);
        ck_assert(of != 1 || stages->item[1]->at.col == 10 + 24);
        const char **names = GP_NEW(&arena, const char *, n);
        effort_begin();
        if (of < 2)
            gp_stage_names(&arena, stages, names);
        took += effort_end();
    }
    gp_arena_free(&arena);
    return took;
}

TEST_EFFORT(takes_work_in_proportion, sizeof many / sizeof *many)
{
    effort_is_linear(many[_i].what, parse_many, &_i, many[_i].n);
}

TEST(byte_order_mark)
{
    gp_spec *s = parse("\xef\xbb\xbf" "a: 1\n");
    ck_assert_ptr_nonnull(s);
    ck_at(gp_node_get(s->root, "a"), 1, 4, 1);
}

static void ck_names(const char *text, const char *const *want, int n)
{
    gp_spec *s = parse(text);
    ck_assert_ptr_nonnull(s);
    const char *names[8];
    gp_stage_names(&arena, gp_node_get(s->root, "stages"), names);
    for (int i = 0; i < n; i++)
        ck_assert_str_eq(names[i], want[i]);
}

TEST(stage_names)
{
    ck_names("stages: [{use: blur}, {use: gray}, {use: blur}, {use: blur, name: x}, {use: blur}]",
             (const char *[]){ "blur", "gray", "blur2", "x", "blur3" }, 5);
    ck_names("stages: [{use: blur}, {use: blur}, {use: a, name: blur}, {use: b, name: blur3}]",
             (const char *[]){ "blur2", "blur4", "blur", "blur3" }, 4);
    ck_names("stages: [7, {use: []}, {name: }]", (const char *[]){ "stage", "stage2", "stage3" }, 3);
}

TEST_SUITE(parse, setup, teardown, 0)
