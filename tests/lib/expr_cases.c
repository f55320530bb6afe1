/* expr_cases.c - the kind `expr` against NumPy (tests/ref/exprs.txt), against `cast`, and against itself: batches,
 * partial frames, frames of other shapes. */
#include "base/memfile.h"
#include "expr_cases.h"
#include "cases.h"

static gp_dev *dev;

static void open_device(void) { dev = trial_device(cases_backend()); }
static void close_device(void) { dev->backend->close(dev); }

/* ---- the cases ------------------------------------------------------------ */

enum { MOST_GIVEN = 100 };
static struct { char name[20]; array a; } given[MOST_GIVEN];
static int ngiven;

/* "TYPE [SHAPE] OFFSET" */
static array read_array(const char *text, FILE *data)
{
    char name[8];
    int used = 0;
    gp_type t = { .ndim = 0 };
    ck_assert_msg(sscanf(text, " %7s [%n", name, &used) == 1 && used, "exprs.txt: %s", text);
    t.dtype = gp_dtype_parse(name);
    for (text += used; *text && *text != ']'; text += *text == ',' ? 2 : 0)
        t.dim[t.ndim++] = strtol(text, (char **)&text, 10);
    array a = array_new(t.dtype, t.ndim, t.dim);
    ck_assert(!fseek(data, atol(text + 1), SEEK_SET) && fread(a.data, 1, gp_bytes(&t), data) == gp_bytes(&t));
    return a;
}

static array copy_of(const array *a)
{
    return array_rows(a, 0, a->type.dim[0]);
}

/* The next of what `end` separates; `*at` goes on behind it. */
static char *next(char **at, const char *end)
{
    char *from = *at + strspn(*at, " "), *stop = strstr(from, end);
    *at = stop ? stop + strlen(end) : from + strlen(from);
    if (stop)
        *stop = 0;
    return from;
}

static expr_case parse_case(char *line, FILE *data)
{
    expr_case c = { .nin = 0 };
    line[strcspn(line, "\n")] = 0;
    snprintf(c.name, sizeof c.name, "%s", next(&line, " @ "));
    c.tolerance = atof(next(&line, " @ "));
    for (char *in = next(&line, " @ "); *in; c.nin++) {
        char *port = next(&in, ": "), *name = next(&in, ", ");
        int i = 0;
        if (!strcmp(port, "edge")) {
            snprintf(c.edge, sizeof c.edge, "%s", name);
            c.nin--;
            continue;
        }
        while (i < ngiven && strcmp(given[i].name, name))
            i++;
        ck_assert_msg(i < ngiven && c.nin < EXPR_INPUTS, "%s: %s", c.name, name);
        snprintf(c.port[c.nin], sizeof c.port[0], "%s", port);
        c.in[c.nin] = copy_of(&given[i].a);
    }
    snprintf(c.program, sizeof c.program, "%s", next(&line, " @ "));
    while (*line) {
        char *one = line;
        char *end = strchr(line, ']');
        end += strcspn(end, ",");
        line = *end ? end + 2 : end;
        *end = 0;
        ck_assert_int_lt(c.nout, EXPR_OUTPUTS);
        c.want[c.nout++] = read_array(one, data);
    }
    return c;
}

void expr_each_case(void (*f)(const expr_case *))
{
    static char line[8000];
    FILE *list = fopen("tests/ref/exprs.txt", "r"), *data = fopen("tests/ref/exprs.bin", "rb");
    int n = 0;
    ck_assert_msg(list && data, "cannot open tests/ref/exprs.txt and exprs.bin");
    ngiven = 0;
    while (fgets(line, sizeof line, list)) {
        ck_assert_msg(strchr(line, '\n') != NULL, "exprs.txt has a line that is too long");
        if (!strncmp(line, "in ", 3)) {
            char *at = line + 3;
            ck_assert_int_lt(ngiven, MOST_GIVEN);
            snprintf(given[ngiven].name, sizeof given[0].name, "%s", next(&at, " "));
            given[ngiven++].a = read_array(at, data);
        } else if (*line != '#') {
            expr_case c = parse_case(line, data);
            f(&c);
            for (int i = 0; i < c.nin; i++)
                array_free(&c.in[i]);
            for (int i = 0; i < c.nout; i++)
                array_free(&c.want[i]);
            n++;
        }
    }
    while (ngiven)
        array_free(&given[--ngiven].a);
    fclose(list);
    fclose(data);
    ck_assert_int_gt(n, 200);
}

/* Inputs of fewer axes do not have the first one. */
static int64_t declared(const expr_case *c, const gp_type *t, int k, expr_way way)
{
    bool first = k + c->want[0].type.ndim - t->ndim == 0;
    return t->dim[k] + (t->dim[k] == 1 ? 0 : first ? way.rows : way.more);
}

char *expr_pipeline(const expr_case *c, expr_way way)
{
    gp_memfile m;
    size_t len;
    ck_assert(gp_memfile_open(&m));
    fputs("vars: {gain: 1.5, count: 6}\nbuffers:\n", m.f);
    for (int i = 0; i < c->nin; i++) {
        const gp_type *t = &c->in[i].type;
        fprintf(m.f, "  x%d: {dtype: %s, shape: [", i, gp_dtype_name(t->dtype));
        for (int k = 0; k < t->ndim; k++)
            fprintf(m.f, way.bounds && t->dim[k] > 1 ? "%s\"<=%lld\"" : "%s%lld", k ? ", " : "",
                    (long long)declared(c, t, k, way));
        fputs("]}\n", m.f);
    }
    for (int i = 0; way.typed && i < c->nout; i++)
        fprintf(m.f, "  z%d: {dtype: %s}\n", i, gp_dtype_name((gp_dtype)(i + 1)));
    fputs("stages:\n  - {use: give, out: [", m.f);
    for (int i = 0; i < c->nin; i++)
        fprintf(m.f, "%sx%d", i ? ", " : "", i);
    fputs("]}\n  - name: it\n    use: expr\n    in: {", m.f);
    for (int i = 0; i < c->nin; i++)
        fprintf(m.f, "%s%s: x%d", i ? ", " : "", c->port[i], i);
    fputs("}\n    out: {", m.f);
    for (int i = 0; i < c->nout; i++)
        fprintf(m.f, "%sy%d: z%d", i ? ", " : "", i, i);
    fputs("}\n", m.f);
    if (*c->edge)
        fprintf(m.f, "    edge: %s\n", c->edge);
    fprintf(m.f, "    expr: \"%s\"\n", c->program);
    for (int i = 0; i < c->nout; i++)
        fprintf(m.f, "  - {use: take, in: z%d}\n", i);
    char *text = gp_memfile_close(&m, &len);
    ck_assert_ptr_nonnull(text);
    return text;
}

static trial *open_case(const expr_case *c, int n, expr_way way)
{
    gp_errs errs = { 0 };
    char *text = expr_pipeline(c, way);
    trial *t = trial_open_text(dev, text, n, &errs);
    ck_assert_msg(t != NULL, "%s: %s\n%s", c->name, pipe_said(&errs), text);
    free(text);
    return t;
}

static void free_all(array *a, int n)
{
    for (int i = 0; i < n; i++)
        array_free(&a[i]);
}

/* ---- against references ----------------------------------------------------- */

static int every, nth;             /* of the cases that are compared with references */

static void as_reference(const expr_case *c)
{
    array out[EXPR_OUTPUTS];
    if (!*c->edge && nth++ % every)
        return;
    trial *t = open_case(c, 1, (expr_way){ 0 });
    trial_run(t, c->in, 1, out);
    for (int i = 0; i < c->nout; i++)
        SAME(out[i], c->want[i], c->tolerance, "%s: y%d of %s", c->name, i, c->program);
    free_all(out, c->nout);
    trial_close(t);
}

TEST(test_references)
{
    nth = 0;
    expr_each_case(as_reference);
}

/* ---- batches, partial frames, other shapes ------------------------------------ */

static bool is_large(const expr_case *c)
{
    return strstr(c->name, "large,") || strstr(c->name, "clip") || !strcmp(c->name, "indices") || !strcmp(c->name, "names");
}

/* `times` copies below each other, of an input that has the frame's first axis. */
static array taller(const array *a, int ndim, int times)
{
    gp_type t = a->type;
    bool grows = t.ndim == ndim && t.dim[0] > 1;
    t.dim[0] *= grows ? times : 1;
    array tall = array_new(t.dtype, t.ndim, t.dim);
    for (int i = 0; i < (grows ? times : 1); i++)
        memcpy((char *)tall.data + (size_t)i * gp_bytes(&a->type), a->data, gp_bytes(&a->type));
    return tall;
}

/* The frames of a batch are the case's, with other numbers in each, or `times` as tall. */
static void batch_as_singles(const expr_case *c, int times)
{
    enum { N = 3 };
    array in[N * EXPR_INPUTS], out[N * EXPR_OUTPUTS], alone[EXPR_OUTPUTS];
    const gp_type *frame = &c->want[0].type;
    trial *t = open_case(c, N, (expr_way){ .rows = (int)frame->dim[0] * (times - 1) });
    ck_assert(trial_batched(t));
    for (int j = 0; j < N; j++)
        for (int i = 0; i < c->nin; i++) {
            array whole = taller(&c->in[i], frame->ndim, times);
            in[j * c->nin + i] = copy_of(&whole);
            unsigned char *p = in[j * c->nin + i].data;
            size_t size = gp_dtype_size(whole.type.dtype), n = gp_bytes(&whole.type);
            for (size_t k = 0; k < n; k++)
                p[k] = ((unsigned char *)whole.data)[(k + (size_t)j * size) % n];
            array_free(&whole);
        }
    trial_run(t, in, N, out);
    for (int j = 0; j < N; j++) {
        trial_run(t, &in[j * c->nin], 1, alone);
        for (int i = 0; i < c->nout; i++)
            SAME(out[j * c->nout + i], alone[i], 0, "%s: y%d of frame %d of a batch", c->name, i, j);
        free_all(alone, c->nout);
    }
    free_all(in, N * c->nin);
    free_all(out, N * c->nout);
    trial_close(t);
}

static void as_singles(const expr_case *c)
{
    if (is_large(c) || *c->edge || !strcmp(c->name, "random 7"))
        batch_as_singles(c, 1);
    if (strstr(c->name, "photo") || strstr(c->name, "and itself"))
        batch_as_singles(c, 60);       /* a thread of a GPU takes several elements */
}

TEST(test_batches)
{
    expr_each_case(as_singles);
}

/* The first elements along each axis, `size` at most. */
static array corner(const array *a, int ndim, const int64_t *size)
{
    gp_type t = a->type;
    int64_t from[GP_MAXDIM] = { 0 };
    size_t bytes = gp_dtype_size(t.dtype);
    for (int k = 0; k < t.ndim; k++) {
        int64_t most = size[ndim - t.ndim + k];
        t.dim[k] = t.dim[k] < most ? t.dim[k] : most;
    }
    array c = array_new(t.dtype, t.ndim, t.dim);
    for (int64_t e = 0; e < gp_count(&t); e++) {
        int64_t at = 0;
        for (int k = 0; k < t.ndim; k++)
            at = at * a->type.dim[k] + from[k];
        memcpy((char *)c.data + (size_t)e * bytes, (char *)a->data + (size_t)at * bytes, bytes);
        for (int k = t.ndim - 1; k >= 0 && ++from[k] == t.dim[k]; k--)
            from[k] = 0;
    }
    return c;
}

/* A smaller frame gives a corner of what the whole one gives. */
static void smaller(const expr_case *c, const int64_t *size, bool bounds)
{
    array in[EXPR_INPUTS], out[EXPR_OUTPUTS];
    int ndim = c->want[0].type.ndim;
    trial *t = open_case(c, 1, (expr_way){ .bounds = bounds });
    for (int i = 0; i < c->nin; i++)
        in[i] = corner(&c->in[i], ndim, size);
    trial_run(t, in, 1, out);
    for (int i = 0; i < c->nout; i++) {
        array want = corner(&c->want[i], ndim, size);
        SAME(out[i], want, c->tolerance, "%s: y%d of a frame of %lld rows", c->name, i, (long long)size[0]);
        array_free(&want);
    }
    free_all(in, c->nin);
    free_all(out, c->nout);
    trial_close(t);
}

static void as_part(const expr_case *c)
{
    const gp_type *t = &c->want[0].type;
    int64_t size[GP_MAXDIM];
    if (!is_large(c))
        return;
    for (int rows = 1; rows < t->dim[0]; rows += 2 + (rows > 5) * 30) {
        memcpy(size, t->dim, sizeof size);
        size[0] = rows;
        smaller(c, size, false);
        size[1] = 1 + rows % (t->dim[1] - 1);
        smaller(c, size, true);
    }
}

TEST(test_smaller)
{
    expr_each_case(as_part);
}

/* Neighbors are those of the frame that is there, where larger ones are declared: with fewer rows, so that a thread
 * of a GPU takes several elements, or of any shape. */
static void in_larger(const expr_case *c)
{
    static const expr_way ways[] = { { .rows = 600 }, { .bounds = true, .rows = 600, .more = 70 },
                                      { .bounds = true, .rows = 9, .more = 5 } };
    array out[EXPR_OUTPUTS];
    for (int w = 0; *c->edge && w < 3 && !strstr(c->name, "part"); w++) {  /* their axes are longer in other ways */
        trial *t = open_case(c, 1, ways[w]);
        trial_run(t, c->in, 1, out);
        for (int i = 0; i < c->nout; i++)
            SAME(out[i], c->want[i], c->tolerance, "%s: y%d of a frame that is smaller than declared", c->name, i);
        free_all(out, c->nout);
        trial_close(t);
    }
}

TEST(test_edges_of_smaller)
{
    expr_each_case(in_larger);
}

/* ---- declared types: as `cast` ------------------------------------------------- */

/* The real part of c64, as f32. */
static array complex_of(array a)
{
    array c = array_new(GP_C64, a.type.ndim, a.type.dim);
    for (int64_t i = 0; i < gp_count(&a.type); i++)
        ((gp_c64 *)c.data)[i] = (gp_c64){ ((float *)a.data)[i], 0 };
    array_free(&a);
    return c;
}

/* Each type as an output. */
static void as_cast(const expr_case *c)
{
    enum { TYPES = GP_C64 };
    static const char *const made[] = { "a", "a + 0" };
    if (!strstr(c->name, " alone"))
        return;
    for (int k = 0; k < 2; k++) {
        expr_case copy = *c;
        array out[TYPES];
        size_t n = 0;
        copy.nout = TYPES;
        for (int i = 0; i < TYPES; i++)
            n += (size_t)snprintf(copy.program + n, sizeof copy.program - n, "y%d = %s; ", i, made[k]);
        trial *t = open_case(&copy, 1, (expr_way){ .typed = true });
        trial_run(t, c->in, 1, out);
        for (int i = 0; i < TYPES; i++) {
            bool complex = i + 1 == GP_C64;
            char *options = format("dtype: %s", gp_dtype_name(complex ? GP_F32 : (gp_dtype)(i + 1)));
            array want = trial_once(dev, "cast", options, c->in, 1);
            want = complex ? complex_of(want) : want;
            bool zero = k && i + 1 >= GP_F16;          /* -0 + 0 is 0 */
            if (!zero)
                SAME(out[i], want, 0, "%s: '%s' as %s", c->name, made[k], gp_dtype_name((gp_dtype)(i + 1)));
            array_free(&want);
        }
        free_all(out, TYPES);
        trial_close(t);
    }
}

TEST(test_declared)
{
    expr_each_case(as_cast);
}

CASES_SUITE(expr, open_device, close_device, 900, every = cases_thin(1, 1, 9))
