/* carry_graph.c - see carry_graph.h. The model asks for each frame by its number, so that what a cycle computes first
 * needs no thought. */
#include <stdarg.h>
#include "carry_graph.h"

/* ---- words ----------------------------------------------------------- */

static const char *const two[] = { "sum", "diff", "mean", "hdiff", "cap", NULL };
static const char *const counted[] = { "slide", "decimate", "hold", "lose", "fail", "cap", NULL };

static bool among(const char *const *list, const char *s)
{
    for (; *list; list++)
        if (!strcmp(*list, s))
            return true;
    return false;
}

static bool is_source(const carry_node *b)
{
    return !*b->op;
}

static bool is_carried(const carry_node *b)
{
    return *b->op == ':';
}

carry_node *carry_find(carry_graph *g, const char *name)
{
    for (int i = 0; i < g->count; i++)
        if (!strcmp(g->node[i].name, name))
            return &g->node[i];
    return NULL;
}

static int index_of(carry_graph *g, const char *name)
{
    carry_node *b = carry_find(g, name);
    ck_assert_msg(b || !strcmp(name, "x") || !strcmp(name, "y"), "no '%s' in: %s", name, g->words);
    if (!b) {
        b = &g->node[g->count++];
        *b = (carry_node){ 0 };
        snprintf(b->name, sizeof b->name, "%s", name);
    }
    return (int)(b - g->node);
}

/* The words of a statement: at most 8. */
static int split(char *text, char *word[8])
{
    int n = 0;
    for (char *w; (w = strsep(&text, " ")); )
        if (*w && n < 8)
            word[n++] = w;
    return n;
}

static void read_carried(carry_graph *g, carry_node *b, char **word, int n)
{
    b->in[b->nin++] = index_of(g, word[2]);
    for (int i = 3; i < n; i++)
        if (!strcmp(word[i], "splice"))
            b->splice = true;
        else if (!strcmp(word[i], "file"))
            b->file = true;
        else
            b->init = atof(word[i]);
}

static void read_stage(carry_graph *g, carry_node *b, char **word, int n)
{
    int i = 3 + b->lua;
    if (among(counted, b->op))
        b->by = atoi(word[i++]);
    ck_assert_msg(n - i == (among(two, b->op) ? 2 : 1), "%s of '%s' in: %s", b->op, b->name, g->words);
    while (i < n)
        b->in[b->nin++] = index_of(g, word[i++]);
}

static void each_statement(carry_graph *g, void (*f)(carry_graph *, char **, int))
{
    char text[1000], *rest = text, *word[8];
    snprintf(text, sizeof text, "%s", g->words);
    for (char *s; (s = strsep(&rest, ";")); ) {
        int n = split(s, word);
        ck_assert_msg(n > 2, "'%s' in: %s", s, g->words);
        f(g, word, n);
    }
}

static void add_name(carry_graph *g, char **word, int n)
{
    carry_node *b = &g->node[g->count++];
    *b = (carry_node){ .lua = n > 3 && !strcmp(word[2], "lua") };
    snprintf(b->name, sizeof b->name, "%s", word[0]);
    snprintf(b->op, sizeof b->op, "%s", *word[1] == ':' ? ":" : word[2 + b->lua]);
}

static void add_inputs(carry_graph *g, char **word, int n)
{
    carry_node *b = carry_find(g, word[0]);
    if (is_carried(b))
        read_carried(g, b, word, n);
    else
        read_stage(g, b, word, n);
}

/* ---- the model ------------------------------------------------------- */

static float *room(carry_graph *g)
{
    return GP_NEW(&g->a, float, g->rows * CARRY_COLS);
}

static double element(const carry_node *b, double p, double q)
{
    if (!strcmp(b->op, "sum") || !strcmp(b->op, "cap"))
        return (double)(float)(p + q);
    if (!strcmp(b->op, "diff"))
        return (double)(float)(p - q);
    if (!strcmp(b->op, "mean"))
        return (double)(float)(p + q) * 0.5;
    if (!strcmp(b->op, "hdiff"))
        return (double)(float)(p - q) * 0.5;
    if (!strcmp(b->op, "scale"))
        return p * 0.5 + 1;
    return p;
}

static carry_fate eval_source(carry_graph *g, carry_node *b, int k)
{
    int size = g->rows * CARRY_COLS;
    float *v = b->frame[k] = room(g);
    for (int i = 0; i < size; i++)
        v[i] = (float)(k * size + i + (*b->name == 'y' ? 1000 : 0));
    return CARRY_OK;
}

static carry_fate eval_carried(carry_graph *g, carry_node *b, int k)
{
    carry_node *of = &g->node[b->in[0]];
    if (k && carry_eval(g, of, k - 1) == CARRY_OK)
        b->frame[k] = of->frame[k - 1];
    else if (k && b->splice)
        carry_eval(g, b, k - 1), b->frame[k] = b->frame[k - 1];
    else {
        b->frame[k] = room(g);
        for (int i = 0; i < g->rows * CARRY_COLS; i++)
            b->frame[k][i] = b->file ? (float)(3 * i + 1) : (float)b->init;
    }
    return CARRY_OK;
}

static carry_fate eval_slide(carry_graph *g, carry_node *b, int k)
{
    carry_node *of = &g->node[b->in[0]];
    carry_fate own = carry_eval(g, of, k);
    if (own != CARRY_OK)
        return own;
    b->frame[k] = room(g);
    memcpy(b->frame[k], of->frame[k], sizeof(float) * (size_t)(g->rows * CARRY_COLS));
    for (int f = k - b->by + 1; f < k; f++) {
        if (f < 0 || carry_eval(g, of, f) != CARRY_OK)
            return CARRY_DROPPED;
        for (int i = 0; i < g->rows * CARRY_COLS; i++)
            b->frame[k][i] = of->frame[f][i] > b->frame[k][i] ? of->frame[f][i] : b->frame[k][i];
    }
    return CARRY_OK;
}

static carry_fate eval_stage(carry_graph *g, carry_node *b, int k)
{
    int from = !strcmp(b->op, "decimate") ? k * b->by : !strcmp(b->op, "hold") ? k / b->by : k;
    carry_fate fate = CARRY_OK;
    for (int i = 0; i < b->nin; i++) {
        carry_fate f = carry_eval(g, &g->node[b->in[i]], from);
        fate = f > fate ? f : fate;
    }
    if (fate != CARRY_OK)
        return fate;
    const float *p = g->node[b->in[0]].frame[from], *q = b->nin > 1 ? g->node[b->in[1]].frame[from] : p;
    if (!strcmp(b->op, "cap") && q[0] >= (float)b->by)
        return CARRY_DROPPED;
    if ((!strcmp(b->op, "lose") || !strcmp(b->op, "fail")) && k % b->by == 1 % b->by)
        return *b->op == 'l' ? CARRY_DROPPED : CARRY_FAILED;
    b->frame[k] = room(g);
    for (int i = 0; i < g->rows * CARRY_COLS; i++)
        b->frame[k][i] = (float)element(b, (double)p[i], (double)q[i]);
    return CARRY_OK;
}

carry_fate carry_eval(carry_graph *g, carry_node *b, int k)
{
    if (b->fate[k] == CARRY_NEW)
        b->fate[k] = is_source(b) ? eval_source(g, b, k) : is_carried(b) ? eval_carried(g, b, k)
                   : !strcmp(b->op, "slide") ? eval_slide(g, b, k) : eval_stage(g, b, k);
    return b->fate[k];
}

/* How many frames each has: as many as the first of its inputs that is known, so that a cycle has those that come
 * into it. */
static void count_frames(carry_graph *g)
{
    for (int round = 0; round < g->count; round++)
        for (carry_node *b = g->node; b < g->node + g->count; b++) {
            int n = is_source(b) ? g->frames : 0;
            for (int i = 0; i < b->nin && !n; i++)
                n = g->node[b->in[i]].n;
            if (!b->n)
                b->n = !strcmp(b->op, "decimate") ? (n + b->by - 1) / b->by : !strcmp(b->op, "hold") ? n * b->by : n;
        }
}

static bool led_to(carry_graph *g, const carry_node *b)
{
    bool led = is_source(b);
    for (int i = 0; i < b->nin && !led && !is_carried(b); i++)
        led = led_to(g, &g->node[b->in[i]]);
    return led;
}

void carry_parse(carry_graph *g, const char *words, int frames, int rows)
{
    *g = (carry_graph){ .words = words, .frames = frames, .rows = rows };
    each_statement(g, add_name);
    each_statement(g, add_inputs);
    count_frames(g);
    for (carry_node *b = g->node; b < g->node + g->count; b++) {
        ck_assert_msg(b->n > 0, "nothing says how many frames '%s' has in: %s", b->name, words);
        b->alone = !led_to(g, b);
        b->fate = GP_NEW(&g->a, carry_fate, b->n);
        b->frame = GP_NEW(&g->a, float *, b->n);
    }
    for (carry_node *b = g->node; b < g->node + g->count; b++)
        for (int k = 0; k < b->n; k++)
            carry_eval(g, b, k);
}

void carry_free(carry_graph *g)
{
    gp_arena_free(&g->a);
}

/* ---- what a graph has ------------------------------------------------ */

int carry_reader(const carry_graph *g, int of, bool carried)
{
    for (int i = 0; i < g->count; i++)
        for (int k = 0; k < g->node[i].nin; k++)
            if (g->node[i].in[k] == of && (carried || !is_carried(&g->node[i])))
                return i;
    return -1;
}

bool carry_has(const carry_graph *g, const char *op)
{
    for (int i = 0; i < g->count; i++)
        if (!strcmp(g->node[i].op, op))
            return true;
    return false;
}

bool carry_regroups(const carry_graph *g)
{
    return carry_has(g, "decimate") || carry_has(g, "hold");
}

/* Is `what` among what `node` is made of? */
static bool made_of(const carry_graph *g, int node, int what, bool *seen)
{
    for (int i = 0; i < g->node[node].nin; i++) {
        int in = g->node[node].in[i];
        if (in == what || (!seen[in] && (seen[in] = true) && made_of(g, in, what, seen)))
            return true;
    }
    return false;
}

static bool in_cycle(const carry_graph *g, int node)
{
    bool seen[CARRY_NODES] = { 0 };
    return made_of(g, node, node, seen);
}

/* With an even seed what no stage reads has a sink, with an odd one all that may have one. */
static bool written(const carry_graph *g, int i, const carry_how *how)
{
    const carry_node *b = &g->node[i];
    return !b->alone && (carry_reader(g, i, false) < 0 || (how->seed % 2 && !is_source(b)));
}

gp_account carry_account(carry_graph *g)
{
    gp_account r = { .in = (uint64_t)g->frames };
    for (int k = 0; k < g->frames; k++) {
        carry_fate worst = CARRY_OK;
        for (int i = 0; i < g->count; i++)
            if (!g->node[i].alone && g->node[i].fate[k] > worst)
                worst = g->node[i].fate[k];
        r.out += worst == CARRY_OK, r.dropped += worst == CARRY_DROPPED, r.failed += worst == CARRY_FAILED;
    }
    return r;
}

/* ---- YAML ------------------------------------------------------------ */

typedef struct text { char *s; size_t n, room; } text;

__attribute__((format(printf, 2, 3)))
static void put(text *t, const char *form, ...)
{
    va_list v;
    va_start(v, form);
    t->n += (size_t)vsnprintf(t->s + t->n, t->room - t->n, form, v);
    va_end(v);
    ck_assert(t->n < t->room);
}

/* In a cycle a type has to stand somewhere: at the carried buffer, or at what it carries. */
static void put_buffers(text *t, const carry_graph *g, const carry_how *how)
{
    bool typed[CARRY_NODES] = { 0 };
    for (int i = 0; i < g->count; i++) {
        const carry_node *b = &g->node[i];
        if (is_source(b))
            typed[i] = true;
        else if (is_carried(b) && !b->file && in_cycle(g, i))
            typed[how->seed / 2 % 2 ? i : b->in[0]] = true;
    }
    put(t, "buffers:\n");
    for (int i = 0; i < g->count; i++) {
        const carry_node *b = &g->node[i];
        if (!typed[i] && !is_carried(b))
            continue;
        put(t, "  %s: {", b->name);
        if (is_carried(b))
            put(t, "carry: %s", g->node[b->in[0]].name);
        if (b->file)
            put(t, ", init: start.npy");
        else if (b->init != 0)
            put(t, ", init: %g", b->init);
        if (b->splice || (is_carried(b) && how->seed % 3 == 0))
            put(t, ", on_hole: %s", b->splice ? "splice" : "reset");
        if (typed[i])
            put(t, "%sdtype: f32, shape: [%d, %d]", is_carried(b) ? ", " : "", g->rows, CARRY_COLS);
        put(t, "}\n");
    }
}

static const struct { const char *op, *c, *lua; } makes[] = {
    { "sum", "a[i] + b[i]", "y:add(x.a, x.b)" },
    { "diff", "a[i] - b[i]", "y:sub(x.a, x.b)" },
    { "mean", "(a[i] + b[i]) * 0.5f", "y:add(x.a, x.b) y:mul(y, 0.5)" },
    { "hdiff", "(a[i] - b[i]) * 0.5f", "y:sub(x.a, x.b) y:mul(y, 0.5)" },
    { "scale", "a[i] * 0.5f + 1", "y:scale(x, 0.5, 1)" },
    { "copy", "a[i]", "y:copy(x)" },
    { "slow", "slowly(a[i])", "for i = 1, 20000 do y[1] = i end y:copy(x)" },
    { "cap", "0", "if x.b[1] >= by then return 'drop' end y:add(x.a, x.b)" },
    { "lose", "0", "if frame.index % by == 1 % by then return 'drop' end y:copy(x)" },
    { "fail", "0", "if frame.index % by == 1 % by then error('as asked') end y:copy(x)" },
};

static int make_of(const carry_node *b)
{
    for (int i = 0; i < (int)(sizeof makes / sizeof *makes); i++)
        if (!strcmp(makes[i].op, b->op))
            return i;
    ck_abort_msg("no '%s'", b->op);
    return -1;
}

static void put_kernel(text *t, const carry_node *b)
{
    put(t, "    use: kernel\n    threads: out.size\n    code: |\n");
    if (!strcmp(b->op, "slow"))
        put(t, "      __device__ float slowly(float x)\n      {\n          volatile float y = x;\n"
            "          for (int i = 0; i < 20000; i++)\n              y = y * 1.0f;\n          return y;\n      }\n");
    put(t, "      extern \"C\" __global__ void %s(const float *a, %sfloat *out, int n)\n      {\n"
        "          int i = blockIdx.x * blockDim.x + threadIdx.x;\n          if (i < n)\n"
        "              out[i] = %s;\n      }\n", b->op, b->nin > 1 ? "const float *b, " : "", makes[make_of(b)].c);
    put(t, b->nin > 1 ? "    args: [a, b, out, {i32: out.size}]\n" : "    args: [in, out, {i32: out.size}]\n");
}

static void put_inputs(text *t, const carry_graph *g, const carry_node *b, bool named)
{
    const char *first = g->node[b->in[0]].name;
    if (b->nin > 1)
        put(t, "    in: {a: %s, b: %s}\n", first, g->node[b->in[1]].name);
    else
        put(t, named ? "    in: %s\n" : "    in: [%s]\n", first);
}

static void put_stage(text *t, const carry_graph *g, const carry_node *b, const carry_how *how)
{
    bool script = b->lua || !strcmp(b->op, "lose") || !strcmp(b->op, "fail") || !strcmp(b->op, "cap");
    const char *in = g->node[b->in[0]].name;
    if (!strcmp(b->op, "slide"))
        put(t, "  - {name: %s-w, use: window, in: %s, frames: %d, partial: drop}\n"
            "  - {name: %s, use: reduce, op: max, axes: [0], in: %s-w}\n", b->name, in, b->by, b->name, b->name);
    else if (!strcmp(b->op, "wide"))
        put(t, "  - {name: %s-w, use: cast, in: %s, dtype: f64}\n  - {name: %s, use: cast, in: %s-w, dtype: f32}\n",
            b->name, in, b->name, b->name);
    else if (!strcmp(b->op, "decimate") || !strcmp(b->op, "hold"))
        put(t, "  - {name: %s, use: %s, in: %s, frames: %d}\n", b->name, b->op, in, b->by);
    else {
        put(t, "  - name: %s\n", b->name);
        if (script)
            put(t, "    use: lua\n    script: %s.lua\n    params: {by: %d}\n%s", b->op, b->by,
                how->seed % 5 == 3 ? "    workers: 3\n" : "");
        else if (!strcmp(b->op, "scale"))
            put(t, "    use: scale\n    a: 0.5\n    b: 1\n");
        else
            put_kernel(t, b);
        put_inputs(t, g, b, how->seed % 2);
    }
}

static void put_scripts(const char *dir)
{
    for (size_t i = 0; i < sizeof makes / sizeof *makes; i++) {
        char *name = format("%s.lua", makes[i].op);
        char *lua = format("stateless = true\nlocal by\nfunction init(stage) by = stage.params.by end\n"
                           "function process(frame, x, y) %s end\n", makes[i].lua);
        pipe_text(dir, name, lua);
    }
}

static float start_value(int64_t i)
{
    return (float)(3 * i + 1);
}

static void put_file(const carry_graph *g, const carry_node *b, const char *dir)
{
    size_t bytes = sizeof(float) * (size_t)(g->rows * CARRY_COLS);
    char *all = malloc(bytes * (size_t)b->n), name[20];
    for (int k = 0; k < b->n; k++)
        memcpy(all + bytes * (size_t)k, b->frame[k], bytes);
    snprintf(name, sizeof name, "%s.raw", b->name);
    pipe_file(dir, name, all, bytes * (size_t)b->n);
    free(all);
}

void carry_yaml(carry_graph *g, const char *dir, const carry_how *how, char *yaml, size_t size)
{
    text t = { .s = yaml, .room = size };
    put_scripts(dir);
    pipe_npy(dir, "start.npy", g->rows, CARRY_COLS, start_value);
    put(&t, "%s%s", how->knobs, carry_has(g, "fail") ? "on_error: drop\n" : "");
    put_buffers(&t, g, how);
    put(&t, "stages:\n");
    for (int i = 0; i < g->count; i++) {
        const carry_node *b = &g->node[i];
        if (!is_source(b))
            continue;
        put_file(g, b, dir);
        put(&t, "  - {name: read-%s, use: read, in: [], path: %s.raw, out: %s}\n", b->name, b->name, b->name);
    }
    for (int k = 0; k < g->count; k++) {
        int i = how->seed % 7 == 4 ? g->count - 1 - k : k;
        if (!is_source(&g->node[i]) && !is_carried(&g->node[i]))
            put_stage(&t, g, &g->node[i], how);
    }
    for (int i = 0; i < g->count; i++)
        if (written(g, i, how))
            put(&t, "  - {use: write, in: %s, path: %s-out.raw, durable: none}\n", g->node[i].name, g->node[i].name);
    pipe_text(dir, "test.yaml", yaml);                 /* for who looks at one that failed */
}

void carry_outputs(carry_graph *g, const char *dir, const carry_how *how, const char *what)
{
    size_t bytes = sizeof(float) * (size_t)(g->rows * CARRY_COLS), got, sinks = 0;
    for (int i = 0; i < g->count; i++) {
        const carry_node *b = &g->node[i];
        if (!written(g, i, how))
            continue;
        char *name = format("%s-out.raw", b->name);
        char *out = pipe_read(dir, name, &got);
        size_t n = 0;
        ck_assert_msg(out != NULL, "no %s of %s", name, what);
        for (int k = 0; k < b->n; k++) {
            if (b->fate[k] != CARRY_OK)
                continue;
            ck_assert_msg(n + bytes <= got && !memcmp(out + n, b->frame[k], bytes), "frame %d of '%s' begins with %g, "
                          "not %g, of %s", k, b->name, n + 4 <= got ? (double)*(float *)(out + n) : -1,
                          (double)b->frame[k][0], what);
            n += bytes;
        }
        ck_assert_msg(n == got, "%s: %zu bytes, not %zu, of %s", name, got, n, what);
        free(out);
        sinks++;
    }
    ck_assert_uint_gt(sinks, 0);
}
