/* test_backend_fault.c - a kernel that writes to where nothing is: the CUDA back end
 * says so once, and fails whatever comes after. It runs in a process of its own,
 * `run --fault SOURCE [1]`, as CUDA does not work on in one that had a fault. */
#include <spawn.h>
#include <sys/wait.h>
#include "device/backend.h"
#include "gpu.h"
#include "pipe.h"

Suite *suite_backend_fault(void);

extern char **environ;

static bool bad_body(gp_rec *r, void *arg)
{
    float *x = NULL;
    int n = 4;
    gp_dim3 one = { 1, 1, 1 };
    return r->ops->item(r, 0, NULL, 0) && r->ops->launch(r, arg, one, one, 0, GP_ARGS(&x, &n));
}

#define EXPECT(x) do { if (!(x)) { \
    fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #x, pipe_said(&errs)); \
    return 1; } } while (0)

static bool fill_body(gp_rec *r, void *arg)
{
    return r->ops->item(r, 0, NULL, 0) && r->ops->fill(r, arg, 1, 4096);
}

int fault_main(const char *path, bool second)
{
    const gp_backend *b = gp_backend_gpu();
    const gp_source source = { .path = path, .entry = "bad", .nparam = 2,
                               .param = (const char *const[]){ "float *", "int" } };
    gp_errs errs = { 0 }, others = { 0 };
    alarm(60);
    gp_dev *dev = b->open(second, &errs), *other = second ? b->open(0, &errs) : NULL;
    EXPECT(dev && !other == !second);
    dev->name = second ? "cuda:1" : NULL;
    EXPECT(!other || (b->prepare(other, 1, (gp_priority[]){ 0 }, 0, 0, &errs) && b->reach(dev, other, &errs)));
    void *its = other ? b->alloc(other, true, 4096, &errs) : NULL;
    EXPECT(!its == !other);
    EXPECT(b->prepare(dev, 2, (gp_priority[]){ 0, 0 }, 0, 0, &errs));
    const gp_kernel *bad = gp_kernel_compile(dev, &source, &errs);
    EXPECT(bad);
    void *mem = b->alloc(dev, true, 4096, &errs), *host = b->alloc(dev, false, 4096, &errs);
    gp_exec *x = b->build(dev, 0, bad_body, (void *)bad, &errs);
    EXPECT(x && mem && host && errs.n == 0);
    b->launch(dev, 0, x, &errs);   /* false when the fault is faster than the return */
    EXPECT(b->wait(dev, 0, GP_SYNC_AUTO, &errs) == -1);
    EXPECT(errs.n == 1 && errs.e[0].code == GP_E_RUN);
    EXPECT(strstr(errs.e[0].msg, "cudaErrorIllegalAddress"));
    EXPECT(strstr(errs.e[0].msg, second ? "cuda:1 stopped, noticed when " : "the GPU stopped, noticed when "));
    puts(errs.e[0].msg);
    if (other && b->direct(other, 0, fill_body, its, &others)) /* it may fail, too, but does not hang */
        b->wait(other, 0, GP_SYNC_BLOCK, &others);
    EXPECT(b->wait(dev, 0, GP_SYNC_BLOCK, &errs) == -1 && b->query(dev, 1, &errs) == -1);
    EXPECT(!b->launch(dev, 1, x, &errs) && !b->direct(dev, 1, bad_body, (void *)bad, &errs));
    EXPECT(!b->alloc(dev, true, 4096, &errs) && !b->build(dev, 0, bad_body, (void *)bad, &errs));
    b->discard(dev, x);
    b->free(dev, true, mem, 4096);
    b->free(dev, false, host, 4096);
    b->close(dev);
    if (other)
        b->free(other, true, its, 4096), b->close(other);
    EXPECT(errs.n == 1);           /* said once */
    return 0;
}

void fault_check(const char *gpu)
{
    const char *dir = pipe_dir();
    char *path = format("%s/bad.cu", dir);
    pipe_text(dir, "bad.cu", "extern \"C\" __global__ void bad(float *x, int n)\n{\n    x[n] = 1.0f;\n}\n");
    pid_t pid;
    int status = -1;
    const char *argv[] = { "run", "--fault", path, gpu, NULL };
    ck_assert_int_eq(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, (char **)argv, environ), 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    pipe_dir_remove(dir);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %#x", (unsigned)status);
}

TEST(a_fault_is_reported_once)
{
    fault_check(NULL);
}

Suite *suite_backend_fault(void)
{
    if (!have_gpu)
        return NULL;
    Suite *s = suite_create("backend_fault");
    TCase *t = tcase_create("fault");
    suite_fill(t, suite_items, 1);
    suite_add_tcase(s, t);
    return s;
}
