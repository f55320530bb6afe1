/* ranks_notes.c - notes of one rank to all, at any time while they exchange rounds (ranks_run.c): see ranks.h.
 *
 * In each round a rank says how long its next note is. Where one has any, all send theirs behind that round. As all
 * see the same rounds, all hear the same notes in the same order, each rank its own, too. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "cli/ranks_told.h"

static struct {
    pthread_mutex_t lock;
    gp_note *out, *in;                 /* the first of those that are to be told, that were heard */
    bool over;                         /* there are no rounds any more */
    void (*wake)(void *);
    void *arg;
} notes = { .lock = PTHREAD_MUTEX_INITIALIZER };

static gp_note *new_note(int from, const char *text, size_t n)
{
    gp_note *note = gp_ranks_room(1, sizeof *note + n + 1);
    note->from = from, note->n = n;
    memcpy(note->text, text, n);
    return note;
}

static void append(gp_note **to, gp_note *note)
{
    while (*to)
        to = &(*to)->next;
    *to = note;
}

static gp_note *first_of(gp_note **of)
{
    gp_note *note = *of;
    if (note)
        *of = note->next;
    return note;
}

bool gp_ranks_note(const char *text, size_t n)
{
    gp_note *note = new_note(gp_rank(), text, n);
    pthread_mutex_lock(&notes.lock);
    bool over = notes.over;
    if (!over)
        append(&notes.out, note);
    pthread_mutex_unlock(&notes.lock);
    if (over)
        free(note);
    return !over;
}

gp_note *gp_ranks_note_next(void)
{
    pthread_mutex_lock(&notes.lock);
    gp_note *note = first_of(&notes.in);
    pthread_mutex_unlock(&notes.lock);
    return note;
}

void gp_ranks_notes_to(void (*wake)(void *arg), void *arg)
{
    pthread_mutex_lock(&notes.lock);
    notes.wake = wake, notes.arg = arg;
    pthread_mutex_unlock(&notes.lock);
}

int gp_ranks_note_bytes(void)
{
    pthread_mutex_lock(&notes.lock);
    int n = notes.out ? (int)notes.out->n : 0;
    pthread_mutex_unlock(&notes.lock);
    return n;
}

bool gp_ranks_notes_pass(gp_errs *errs)
{
    int *bytes = gp_ranks_room((size_t)gp_ranks(), sizeof *bytes), most = 0;
    for (int r = 0; r < gp_ranks(); r++) {
        bytes[r] = gp_told_by(r)->note;
        most = bytes[r] > most ? bytes[r] : most;
    }
    pthread_mutex_lock(&notes.lock);
    gp_note *own = bytes[gp_rank()] ? first_of(&notes.out) : NULL;
    pthread_mutex_unlock(&notes.lock);
    char *of = most ? gp_ranks_gather_any(own ? own->text : "", bytes, errs) : NULL, *text = of;
    pthread_mutex_lock(&notes.lock);
    for (int r = 0; of && r < gp_ranks(); text += bytes[r++])
        if (bytes[r])
            append(&notes.in, new_note(r, text, (size_t)bytes[r]));
    void (*wake)(void *) = notes.wake;
    void *arg = notes.arg;
    pthread_mutex_unlock(&notes.lock);
    if (of && wake)
        wake(arg);
    free(own), free(bytes), free(of);
    return of || !most;
}

void gp_ranks_notes_end(void)
{
    gp_note *note;
    pthread_mutex_lock(&notes.lock);
    notes.over = true;
    while ((note = first_of(&notes.out)))
        free(note);
    pthread_mutex_unlock(&notes.lock);
}
