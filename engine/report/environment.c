/* environment.c - where something was measured, for whoever reads it later. */
#include <string.h>
#include <time.h>
#include "report/report.h"

/* What stands behind `key` in a file of lines; false when it is not there. */
static bool find_line(const char *path, const char *key, char *to, size_t size)
{
    char line[512];
    bool found = false;
    FILE *f = fopen(path, "re");
    while (f && !found && fgets(line, sizeof line, f)) {
        const char *at = strstr(line, key);
        if (!at)
            continue;
        at += strlen(key);
        at += strspn(at, "\t :");
        snprintf(to, size, "%.*s", (int)strcspn(at, "\n"), at);
        found = true;
    }
    if (f)
        fclose(f);
    return found;
}

/* "580.65.06" in "NVIDIA UNIX x86_64 Kernel Module  580.65.06  Release Build ...". */
static void keep_version(char *text)
{
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " ")) {
        size_t n = strspn(word, "0123456789.");
        if (!word[n] && strchr(word, '.')) {
            memmove(text, word, n + 1);
            return;
        }
    }
    *text = '\0';
}

static void look_at_gpu(gp_environment *e, const gp_machine *m, int device)
{
    char line[256];
    const char *name = gp_machine_device(m, device);
    gp_machine_info is;
    gp_machine_about(m, &is);
    if (name)
        snprintf(e->gpu, sizeof e->gpu, "%s", name);
    if (find_line("/proc/driver/nvidia/version", "NVRM version", line, sizeof line)) {
        keep_version(line);
        snprintf(e->driver, sizeof e->driver, "%.30s", line);
    }
    if (!*e->driver && is.cuda_driver)
        snprintf(e->driver, sizeof e->driver, "for CUDA %d.%d", is.cuda_driver / 1000,
                 is.cuda_driver % 1000 / 10);
}

void gp_environment_read(gp_environment *e, int device, const char *commit)
{
    time_t now = time(NULL);
    struct tm t;
    gp_machine *m = gp_machine_create(device >= 0);
    gp_machine_info is;
    *e = (gp_environment){ .gpu = "" };
    if (!find_line("/proc/cpuinfo", "model name", e->cpu, sizeof e->cpu))
        snprintf(e->cpu, sizeof e->cpu, "unknown");
    if (m) {
        gp_machine_about(m, &is);
        e->cores = is.cpus;
        if (is.cuda)
            snprintf(e->toolkit, sizeof e->toolkit, "CUDA %d.%d", is.cuda / 1000,
                     is.cuda % 1000 / 10);
        if (device >= 0)
            look_at_gpu(e, m, device);
    }
    gp_machine_destroy(m);
    snprintf(e->commit, sizeof e->commit, "%.20s", commit);
    strftime(e->date, sizeof e->date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &t));
}
