/* lines.c - which line of a user's source an instruction was made of.
 *
 * Libraries carry no table of lines, which costs nobody anything until a kernel is found at
 * fault. Then the source is compiled again with one, by the same compiler with the same
 * options, and addr2line of binutils asked. That the code is the same is checked. */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "cpu/kernel.h"
#include "device/source.h"

extern char **environ;

enum { MOST_WORDS = 64, ALIKE = 64 };

/* A shell finds the compiler as cc.c does, whose options follow. (DWARF 5: with a source from
 * its input gcc 12 gives the lines of headers to the input.) */
static const char script[] =
    "cd \"$1\" || exit 1; lines=\"$2\" at=\"$3\"; shift 3\n"
    "[ -n \"$CXX\" ] || for c in c++ g++ clang++; do command -v $c >/dev/null && CXX=$c && break; done\n"
    "LC_ALL=C $CXX -g1 -gdwarf-4 \"$@\" -o out.so <unit.cu >/dev/null 2>&1 &&"
    " addr2line -e out.so \"$at\" >\"$lines\" 2>/dev/null";

static bool run(const char *const *argv)
{
    pid_t pid;
    int status = -1;
    if (posix_spawnp(&pid, argv[0], NULL, NULL, (char *const *)argv, environ))
        return false;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status == 0;
}

/* Is the code at `offset` of the library in `path` what is at `pc` in memory? */
static bool alike(const char *path, size_t offset, const char *pc)
{
    Elf64_Ehdr head;
    Elf64_Phdr part;
    char code[ALIKE];
    bool same = false;
    FILE *f = fopen(path, "rb");
    if (!f)
        return false;
    bool ok = fread(&head, sizeof head, 1, f) == 1;
    for (int i = 0; ok && i < head.e_phnum; i++) {
        ok = !fseek(f, (long)(head.e_phoff + (size_t)i * head.e_phentsize), SEEK_SET)
            && fread(&part, sizeof part, 1, f) == 1;
        if (!ok || part.p_type != PT_LOAD || offset < part.p_vaddr
            || offset >= part.p_vaddr + part.p_filesz)
            continue;
        size_t n = part.p_vaddr + part.p_filesz - offset;
        n = n < ALIKE ? n : ALIKE;
        same = !fseek(f, (long)(part.p_offset + offset - part.p_vaddr), SEEK_SET)
            && fread(code, 1, n, f) == n && !memcmp(code, pc, n);
        break;
    }
    fclose(f);
    return same;
}

static bool write_unit(const gp_unit *u, const char *path)
{
    FILE *f = fopen(path, "wb");
    bool ok = f && fwrite(u->text, 1, u->len, f) == u->len;
    return f && !fclose(f) && ok;
}

/* "FILE:LINE" or "FILE:LINE (discriminator 3)"; "??:0" where it does not know. */
static bool read_line(const char *path, char file[PATH_MAX], int *line)
{
    char text[PATH_MAX + 80] = "";
    FILE *f = fopen(path, "r");
    bool ok = f && fgets(text, sizeof text, f);
    if (f)
        fclose(f);
    char *colon = ok ? strrchr(text, ':') : NULL;
    if (!colon || (*line = atoi(colon + 1)) <= 0 || colon - text >= PATH_MAX)
        return false;
    *colon = '\0';
    strcpy(file, text);
    return true;
}

static bool ask(const gp_unit *u, const char *dir, const Dl_info *library, const char *pc,
                char file[PATH_MAX], int *line)
{
    const char *argv[MOST_WORDS] = { "sh", "-c", script, "sh", dir };
    size_t offset = (size_t)(pc - (const char *)library->dli_fbase);
    char lines[PATH_MAX], unit[PATH_MAX], out[PATH_MAX], at[24], *folder = realpath(u->dir, NULL);
    int n = 5;
    snprintf(lines, sizeof lines, "%s/lines", dir);
    snprintf(unit, sizeof unit, "%s/unit.cu", dir);
    snprintf(out, sizeof out, "%s/out.so", dir);
    snprintf(at, sizeof at, "0x%zx", offset);
    argv[n++] = lines, argv[n++] = at, argv[n++] = "-iquote", argv[n++] = folder;
    for (int i = 0; gp_cc_flag(i) && n < MOST_WORDS - 1; i++)
        argv[n++] = gp_cc_flag(i);
    bool ok = folder && write_unit(u, unit) && run(argv) && alike(out, offset, pc)
        && read_line(lines, file, line);
    unlink(lines), unlink(unit), unlink(out);
    free(folder);
    return ok;
}

/* As the user wrote it: the compiler was started elsewhere. */
static void spell(const char *dir, const gp_source *source, char file[PATH_MAX])
{
    size_t n = strlen(dir), path = strlen(source->path), len = strlen(file);
    if (!strncmp(file, dir, n) && file[n] == '/')
        memmove(file, file + n + 1, len - n);
    else if (len > path && !strcmp(file + len - path, source->path) && file[len - path - 1] == '/')
        strcpy(file, source->path);
}

bool gp_cpu_line(const gp_source *source, const void *pc, char file[PATH_MAX], int *line)
{
    const char *tmp = getenv("TMPDIR");
    char dir[PATH_MAX - 16];
    gp_errs ignored = { .n = 0 };
    Dl_info library;
    gp_unit u = { 0 };
    bool ok = false;
    snprintf(dir, sizeof dir, "%s/gpipe-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!dladdr(pc, &library) || !mkdtemp(dir))
        return false;
    if (gp_unit_make(&u, source, true, &ignored))
        ok = ask(&u, dir, &library, pc, file, line);
    if (ok)
        spell(dir, source, file);
    gp_unit_free(&u);
    rmdir(dir);
    return ok;
}
