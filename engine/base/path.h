/* path.h - names of files as a pipeline spells them: a plain one, a glob (*, ?, [), a
 * numbered one (%05d), and for writers one with the source file's name (%n).
 *
 * Any thread; nothing is allocated. `err` gets a text that goes on after the name, see
 * outfile.h. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/outfile.h"

bool gp_path_is_glob(const char *path);
/* One of several texts, as in *.{jpg,png}: a glob, too. */
bool gp_path_has_choice(const char *path);
/* ... then how many paths it stands for, no more than GP_CHOICES + 1; 0: its braces do not belong together in pairs
 * with a comma between, or are nested. */
enum { GP_CHOICES = 1000 };
int gp_path_choices(const char *path);
/* ... and the first of them, in memory as large as it is. */
void gp_path_first_choice(const char *path, char *to);

/* The length of the %d, %05d, %n, %t or %% at `p`, or 0. */
size_t gp_path_conversion(const char *p);
bool gp_path_has_number(const char *path);             /* has a %d or %05d */
bool gp_path_lacks_zero(const char *path);             /* has a %5d, which means itself */
bool gp_path_has_name(const char *path);               /* has a %n */
bool gp_path_has_time(const char *path);               /* has a %t */
/* The length of the folders at the beginning of `path` that have no number, with the last '/'. */
size_t gp_path_fixed(const char *path);
/* A time, in ns since 1970, in UTC: 20260131T235959.123456789Z, with these texts between the parts of the date and of
 * the hour. Its length. */
enum { GP_UTC_TEXT = 96 };
int gp_utc_text(char to[GP_UTC_TEXT], int64_t time_ns, const char *date, const char *hour);
/* The pattern with a time for each %t, with nothing between, so that names are in the order of times. False when it does
 * not fit. */
bool gp_path_put_time(char out[PATH_MAX], const char *pattern, int64_t time_ns, char err[GP_WHY]);
/* The path with this number and, for %n, `name`; %% becomes %, a %t stays. False when
 * it does not fit, with an empty text in `out`. */
bool gp_path_expand(char out[PATH_MAX], const char *pattern, uint64_t number, const char *name,
                    char err[GP_WHY]);
/* Is `path` what gp_path_expand makes of `pattern`, which has no %n? Of one with a number
 * *number is which. */
bool gp_path_match(const char *pattern, const char *path, uint64_t *number);

/* May these two paths, patterns with a number or none but no %n, make the same one? Yes only where
 * they do; no is not quite sure of patterns of which each has digits at another end. */
bool gp_path_meets(const char *a, const char *b);

/* The file's name without folder and extension: where it begins in `path`, and
 * its length. */
const char *gp_path_stem(const char *path, size_t *len);
/* The length of the folder at the beginning of `path`, with its last '/'; 0: none. */
size_t gp_path_folder(const char *path);

/* Is it a device, to which frames are given without being kept, or what a shell has opened? /dev/shm has files. */
bool gp_path_is_device(const char *path);

/* `path` without redundant parts, "//", "." and "a/..", in a buffer of as many bytes as it
 * has. A folder that is a symbolic link is taken for one that is not. Returns `out`. */
char *gp_path_plain(char *out, const char *path);
