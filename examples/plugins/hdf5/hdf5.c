/* hdf5.c - a plug-in with a source, hdf5_read, and a sink, hdf5_write: datasets of HDF5 files. Axis 0 of a dataset
 * counts the frames, the other axes are those of a frame.
 *
 * hdf5_write appends to a dataset, and makes it, and the file, where there is none. A frame is seen by who opens the
 * file later, not at once. One stage writes a file, not several with a dataset each. A run that fails leaves the frames
 * before; a process that is killed may leave a file that HDF5 cannot open. */
#include <gpipe/stage.h>
#include <hdf5.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct opts { const char *path, *dataset; int64_t frames, deflate; };      /* of both; of the source; of the sink */

enum { AXES = GP_MAXDIM + 1, CHUNK = 1 << 18, WHY = 300 };

typedef struct set {
    hid_t file, set, space, type;      /* below 0: it is not open */
    int axes;
    hsize_t dim[AXES];                 /* dim[0]: frames that there are */
} set;

/* The library of Debian takes calls of one thread at a time: all of them are between these two. */
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

static void enter(void)
{
    static bool begun;
    pthread_mutex_lock(&one_at_a_time);
    if (!begun)
        H5dont_atexit();               /* its exit handler faults where a file could not be written */
    begun = true;
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);     /* it prints nothing */
}

static void leave(void)
{
    pthread_mutex_unlock(&one_at_a_time);
}

/* What the library says of its last error: of its list the entry that is closest to the cause. */
static herr_t keep_first(unsigned n, const H5E_error2_t *e, void *why)
{
    if (!n)
        strncat(why, e->desc, WHY - 1);
    for (char *line = why; (line = strchr(line, '\n'));)
        *line = ' ';
    return 0;
}

static bool hdf5_says(char why[WHY])
{
    *why = 0;
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_first, why);
    return false;
}

/* ---- types ----------------------------------------------------------- */

/* Of elements in frames, to be closed. Complex numbers are as h5py has them. */
static hid_t type_of(gp_dtype d)
{
    hid_t t, is[GP_NDTYPES] = {
        [GP_U8] = H5T_NATIVE_UINT8, [GP_U16] = H5T_NATIVE_UINT16, [GP_U32] = H5T_NATIVE_UINT32,
        [GP_U64] = H5T_NATIVE_UINT64, [GP_I8] = H5T_NATIVE_INT8, [GP_I16] = H5T_NATIVE_INT16,
        [GP_I32] = H5T_NATIVE_INT32, [GP_I64] = H5T_NATIVE_INT64,
        [GP_F32] = H5T_NATIVE_FLOAT, [GP_F64] = H5T_NATIVE_DOUBLE };
    if (d == GP_C64) {
        t = H5Tcreate(H5T_COMPOUND, sizeof(gp_c64));
        H5Tinsert(t, "r", offsetof(gp_c64, re), H5T_NATIVE_FLOAT);
        H5Tinsert(t, "i", offsetof(gp_c64, im), H5T_NATIVE_FLOAT);
        return t;
    }
    t = H5Tcopy(d == GP_F16 ? H5T_NATIVE_FLOAT : is[d]);
    if (d == GP_F16)
        H5Tset_fields(t, 15, 10, 5, 0, 10), H5Tset_size(t, 2), H5Tset_ebias(t, 15);
    return t;
}

/* Do elements of these types hold the same numbers, in whatever order their bytes are? */
static bool alike(hid_t a, hid_t b)
{
    H5T_class_t c = H5Tget_class(a);
    return c == H5Tget_class(b) && H5Tget_size(a) == H5Tget_size(b)
        && (c == H5T_INTEGER ? H5Tget_sign(a) == H5Tget_sign(b)
            : c == H5T_FLOAT ? H5Tget_ebias(a) == H5Tget_ebias(b)
            : c == H5T_COMPOUND && H5Tget_nmembers(a) == 2 && H5Tget_member_index(a, "r") >= 0
              && H5Tget_member_index(a, "i") >= 0 && H5Tget_member_class(a, 0) == H5T_FLOAT
              && H5Tget_member_class(a, 1) == H5T_FLOAT);
}

/* GP_NO_DTYPE: no frame has such elements. */
static gp_dtype dtype_of(hid_t type)
{
    gp_dtype found = GP_NO_DTYPE;
    for (int d = 1; d < GP_NDTYPES && !found; d++) {
        hid_t t = type_of((gp_dtype)d);
        found = alike(type, t) ? (gp_dtype)d : GP_NO_DTYPE;
        H5Tclose(t);
    }
    return found;
}

/* ---- datasets -------------------------------------------------------- */

static void close_set(set *s)
{
    if (s->type >= 0)
        H5Tclose(s->type);
    if (s->space >= 0)
        H5Sclose(s->space);
    if (s->set >= 0)
        H5Dclose(s->set);
    if (s->file >= 0)
        H5Fclose(s->file);
    *s = (set){ -1, -1, -1, -1, .axes = 0 };
}

/* What is in the dataset s->set, as the type of a frame. */
static bool describe(set *s, gp_type *frame, char why[WHY])
{
    hid_t type = H5Dget_type(s->set);
    int bytes = (int)H5Tget_size(type), class = H5Tget_class(type);
    static const char *const classes[] = { "integers", "floating-point numbers", "times", "strings", "bits", "bytes",
                                           "compounds", "references", "names of an enumeration", "lists", "arrays" };
    s->space = H5Dget_space(s->set);
    s->axes = H5Sget_simple_extent_ndims(s->space);
    *frame = (gp_type){ dtype_of(type), s->axes > 1 ? s->axes - 1 : 1, { 1 } };
    H5Tclose(type);
    if (s->axes < 1 || s->axes > AXES)
        return snprintf(why, WHY, "it has %d axes, and needs 1 to %d: the first counts frames", s->axes, AXES), false;
    if (!frame->dtype)
        return snprintf(why, WHY, "it has %s of %d bytes, which no frame can have",
                        class >= 0 && class < H5T_NCLASSES ? classes[class] : "elements", bytes), false;
    s->type = type_of(frame->dtype);
    H5Sget_simple_extent_dims(s->space, s->dim, NULL);
    for (int k = 1; k < s->axes; k++)
        if (!(frame->dim[k - 1] = (int64_t)s->dim[k]))
            return snprintf(why, WHY, "its axis %d has no elements", k), false;
    return true;
}

static bool open_set(set *s, const struct opts *o, unsigned how, gp_type *frame, char why[WHY])
{
    s->file = H5Fopen(o->path, how, H5P_DEFAULT);
    s->set = s->file < 0 ? -1 : H5Dopen2(s->file, o->dataset, H5P_DEFAULT);
    return s->set < 0 ? hdf5_says(why) : describe(s, frame, why);
}

/* Frame `number` between the file and `data`. */
static bool move(set *s, uint64_t number, void *to, const void *from, char why[WHY])
{
    hsize_t start[AXES] = { number }, count[AXES] = { 1 };
    memcpy(count + 1, s->dim + 1, sizeof *count * (size_t)(s->axes - 1));
    hid_t memory = H5Screate_simple(s->axes, count, NULL);
    herr_t e = H5Sselect_hyperslab(s->space, H5S_SELECT_SET, start, NULL, count, NULL);
    e = e < 0 ? e : to ? H5Dread(s->set, s->type, memory, s->space, H5P_DEFAULT, to)
                       : H5Dwrite(s->set, s->type, memory, s->space, H5P_DEFAULT, from);
    if (e < 0)
        hdf5_says(why);                /* before the next call, which forgets it */
    H5Sclose(memory);
    return e >= 0;
}

#define FAIL(c, o, what) \
    gp_fail((c)->errs, GP_E_RUN, (c)->at, "stage '%s': dataset '%s' of '%s': %s", (c)->name, (o)->dataset, (o)->path, \
            what)

static bool new_state(const gp_open *o, void **state)
{
    set *s = *state = malloc(sizeof *s);
    if (!s)
        return gp_fail(o->errs, GP_E_RESOURCE, o->at, "stage '%s': out of memory", o->name);
    *s = (set){ -1, -1, -1, -1, .axes = 0 };
    return true;
}

static void close_stage(void *state)
{
    if (!state)
        return;
    enter(), close_set(state), leave();
    free(state);
}

/* ---- hdf5_read ------------------------------------------------------- */

static bool read_shape(gp_shape *s)
{
    const struct opts *o = s->opts;
    const gp_file *f = gp_probe_file(s, o->path);
    set found = { -1, -1, -1, -1, .axes = 0 };
    char why[WHY];
    s->by_number = s->writes_all = true;
    gp_shape_reads(s, &o->path, 1);
    if (f->error)
        return gp_shape_missing(s, "path", "'%s' cannot be read: %s", o->path, strerror(f->error));
    if (f->kind != GP_FILE_REGULAR)
        return gp_shape_fail(s, "path", "'%s' is no regular file", o->path);
    enter();
    bool ok = open_set(&found, o, H5F_ACC_RDONLY, &s->out[0], why);
    s->known.frames = o->frames && o->frames < (int64_t)found.dim[0] ? o->frames : (int64_t)found.dim[0];
    close_set(&found);
    leave();
    return ok || gp_shape_fail(s, "dataset", "dataset '%s' of '%s': %s", o->dataset, o->path, why);
}

static bool read_open(const gp_open *o, void **state)
{
    const struct opts *r = o->opts;
    char why[WHY];
    gp_type t;
    if (!new_state(o, state))
        return false;
    enter();
    bool ok = open_set(*state, r, H5F_ACC_RDONLY, &t, why);
    leave();
    if (ok && !gp_type_same(&t, &o->out[0]))
        ok = false, strcpy(why, "it is another one than when the pipeline was compiled");
    return ok || FAIL(o, r, why);
}

static bool read_run(gp_call *c, gp_frame *f, int n)
{
    const struct opts *o = c->opts;
    set *s = c->state;
    char why[WHY], text[WHY + 40];
    (void)n;
    if (f->index >= s->dim[0] || (o->frames && f->index >= (uint64_t)o->frames))
        return f->status = GP_END, true;
    enter();
    bool ok = move(s, f->index, f->out[0].data, NULL, why);
    leave();
    snprintf(text, sizeof text, "frame %llu: %s", (unsigned long long)f->index, ok ? "" : why);
    if (!ok)
        f->status = GP_FAILED, FAIL(c, o, text);
    return true;
}

/* ---- hdf5_write ------------------------------------------------------ */

static bool write_shape(gp_shape *s)
{
    s->serial = true;
    return s->partial || gp_shape_writes(s, "path", ((const struct opts *)s->opts)->path);
}

/* An empty dataset of frames `t`, and groups above it that are not there. */
static bool make_set(set *s, const struct opts *o, const gp_type *t, char why[WHY])
{
    hsize_t dim[AXES] = { 0 }, most[AXES] = { H5S_UNLIMITED }, chunk[AXES] = { 1 + CHUNK / gp_bytes(t) };
    for (int k = 0; k < t->ndim; k++)
        dim[k + 1] = most[k + 1] = chunk[k + 1] = (hsize_t)t->dim[k];
    hid_t type = type_of(t->dtype), space = H5Screate_simple(t->ndim + 1, dim, most);
    hid_t link = H5Pcreate(H5P_LINK_CREATE), how = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_create_intermediate_group(link, 1);
    bool ok = H5Pset_chunk(how, t->ndim + 1, chunk) >= 0
        && (!o->deflate || (H5Pset_shuffle(how) >= 0 && H5Pset_deflate(how, (unsigned)o->deflate) >= 0))
        && (s->set = H5Dcreate2(s->file, o->dataset, type, space, link, how, H5P_DEFAULT)) >= 0;
    if (!ok)
        hdf5_says(why);
    H5Tclose(type), H5Sclose(space), H5Pclose(link), H5Pclose(how);
    return ok;
}

static bool open_or_make(set *s, const struct opts *o, const gp_type *want, char why[WHY])
{
    gp_type is;
    hsize_t most[AXES];
    char text[2][128];
    s->file = access(o->path, F_OK) ? H5Fcreate(o->path, H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT)
                                    : H5Fopen(o->path, H5F_ACC_RDWR, H5P_DEFAULT);
    s->set = s->file < 0 ? -1 : H5Dopen2(s->file, o->dataset, H5P_DEFAULT);
    if (s->file < 0)
        return hdf5_says(why);
    if ((s->set < 0 && !make_set(s, o, want, why)) || !describe(s, &is, why))
        return false;
    H5Sget_simple_extent_dims(s->space, NULL, most);
    if (!gp_type_same(&is, want))
        return snprintf(why, WHY, "it has frames %s, not %s", gp_type_text(&is, text[0]),
                        gp_type_text(want, text[1])), false;
    if (most[0] != H5S_UNLIMITED)
        return strcpy(why, "its axis 0 cannot grow without end: make it with 'maxshape=(None, ...)'"), false;
    return true;
}

static bool write_open(const gp_open *o, void **state)
{
    const struct opts *w = o->opts;
    char why[WHY];
    if (!new_state(o, state))
        return false;
    enter();
    bool ok = open_or_make(*state, w, &o->in[0], why);
    leave();
    return ok || FAIL(o, w, why);
}

/* Makes room for `frames`. */
static bool extend(set *s, hsize_t frames, char why[WHY])
{
    hsize_t was = s->dim[0];
    s->dim[0] = frames;
    if (H5Dset_extent(s->set, s->dim) < 0 || H5Sset_extent_simple(s->space, s->axes, s->dim, NULL) < 0)
        return s->dim[0] = was, hdf5_says(why);
    return true;
}

static bool write_run(gp_call *c, gp_frame *f, int n)
{
    const struct opts *o = c->opts;
    const gp_type *t = &f->in[0].type;
    set *s = c->state;
    char why[WHY], not[WHY];
    (void)n;
    enter();
    hsize_t was = s->dim[0];
    bool ok = (hsize_t)t->dim[0] == (s->axes > 1 ? s->dim[1] : 1);
    if (!ok)
        snprintf(why, WHY, "frame %llu has %lld rows, and a dataset takes whole frames alone",
                 (unsigned long long)f->index, (long long)t->dim[0]);
    else if ((ok = extend(s, was + 1, why)) && !(ok = move(s, was, NULL, f->in[0].data, why)))
        extend(s, was, not);           /* without the frame that is not there */
    leave();
    if (!ok)
        f->status = GP_FAILED, FAIL(c, o, why);
    return true;
}

static bool write_finish(gp_call *c)
{
    const struct opts *o = c->opts;
    char why[WHY];
    enter();
    bool ok = H5Fflush(((set *)c->state)->file, H5F_SCOPE_GLOBAL) >= 0 || hdf5_says(why);
    leave();
    return ok || FAIL(c, o, why);
}

static const gp_port in[] = { { "in", GP_ACCEPT_ANY, .help = "frames of any type" }, { 0 } };
static const gp_port out[] = { { .name = "out", .help = "what is at one index of axis 0 of the dataset" }, { 0 } };
#define BOTH_OPTS { GP_PATH(struct opts, path), .required = true, .help = "of the HDF5 file" }, \
    { GP_TEXT(struct opts, dataset), .required = true, .help = "its name in the file, as 'group/images'" }
static const gp_opt read_opts[] = {
    BOTH_OPTS,
    { GP_INT(struct opts, frames), .def = "0", .min = 0, .max = 1e15, .help = "how many; 0: all that there are" },
    { 0 } };
static const gp_opt write_opts[] = {
    BOTH_OPTS,
    { GP_INT(struct opts, deflate), .def = "0", .min = 0, .max = 9, .help = "of a dataset that it makes" },
    { 0 } };
#define BOTH .field = "files", .opts_size = sizeof(struct opts), .close = close_stage
static const gp_kind reader = {
    GP_KIND("hdf5_read"), .help = "a dataset of an HDF5 file, a frame for each index of axis 0", .also = "h5py h5read",
    .out = out, .opts = read_opts, .shape = read_shape, .open = read_open, .run = read_run, .by_number = true, BOTH };
static const gp_kind writer = {
    GP_KIND("hdf5_write"), .help = "appends frames to a dataset of an HDF5 file", .also = "h5write", .in = in,
    .opts = write_opts, .shape = write_shape, .open = write_open, .run = write_run, .finish = write_finish, BOTH };

GP_PLUGIN("hdf5", "1.0", &reader, &writer);
