/* lines.c - which line of a user's source an instruction was made of.
 *
 * Libraries carry no table of lines, which costs nobody anything until a kernel is found at
 * fault. Then the source is compiled again with one, by the same compiler with the same
 * options, and addr2line of binutils asked. That the code is the same is checked. */
#include <dlfcn.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cpu/child.h"
#include "cpu/kernel.h"
#include "device/scratch.h"
#include "device/source.h"

enum { ALIKE = 64 };

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

/* "FILE:LINE" or "FILE:LINE (discriminator 3)"; "??:0" where it does not know. */
static bool parse_file_line(char *text, char file[PATH_MAX], int *line)
{
    text[strcspn(text, "\n")] = '\0';
    char *colon = strrchr(text, ':');
    if (!colon || (*line = atoi(colon + 1)) <= 0 || colon - text >= PATH_MAX)
        return false;
    *colon = '\0';
    strcpy(file, text);
    return true;
}

static bool ask(const char *dir, const char *library, size_t offset, char file[PATH_MAX], int *line)
{
    char at[24];
    snprintf(at, sizeof at, "0x%zx", offset);
    gp_child child = { .argv = (const char *const[]){ "addr2line", "-e", library, at, NULL },
                       .text = "", .tmp = dir };
    bool ok = gp_child_run(&child) == 0 && parse_file_line(child.log, file, line);
    free(child.log);
    return ok;
}

/* As the user wrote it: relative to the folder that the compiler was started in. */
static void spell(char file[PATH_MAX])
{
    char dir[PATH_MAX];
    size_t n = getcwd(dir, sizeof dir) ? strlen(dir) : 0;
    if (n && !strncmp(file, dir, n) && file[n] == '/')
        memmove(file, file + n + 1, strlen(file) - n);
}

bool gp_cpu_line(const gp_source *source, const void *pc, char file[PATH_MAX], int *line)
{
    gp_errs ignored = { .n = 0 };
    char why[GP_WHY], out[PATH_MAX];
    gp_scratch s;
    Dl_info library;
    gp_unit u = { 0 };
    if (!dladdr(pc, &library) || !gp_scratch_open(&s, why))
        return false;
    size_t offset = (size_t)((const char *)pc - (const char *)library.dli_fbase);
    snprintf(out, sizeof out, "%s/out.so", s.path);
    bool ok = gp_unit_make(&u, source, true, &ignored) && gp_cc_lines(&u, s.path, out)
        && alike(out, offset, pc) && ask(s.path, out, offset, file, line);
    if (ok)
        spell(file);
    gp_unit_free(&u);
    gp_scratch_close(&s);
    return ok;
}
