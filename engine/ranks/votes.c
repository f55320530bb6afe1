/* votes.c - of several ranks one is asked for a change, and all are changed, or none: see ranks.h.
 *
 * What a rank is asked for goes with the rounds (watch.c), of which all see the same: so all begin the same changes,
 * in one order. Votes are gathered on a channel of their own. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "ranks/inside.h"

typedef struct ballot { gp_vote vote; int saved, bytes; uint64_t text; double pause_ms, told_ms; } ballot;

/* ---- what is asked for ----------------------------------------------------- */

static gp_ask *new_ask(gp_ranks *us, int from, const void *data, size_t n)
{
    gp_ask *a = gp_ranks_room(us, 1, sizeof *a + n + 1);
    a->from = from;
    memcpy(a->line, data, n);
    return a;
}

static void append(gp_ask **to, gp_ask *a)
{
    while (*to)
        to = &(*to)->next;
    *to = a;
}

static gp_ask *first_of(gp_ask **of)
{
    gp_ask *a = *of;
    if (a)
        *of = a->next;
    return a;
}

void gp_votes_open(gp_ranks *us)
{
    const size_t n = (size_t)us->n;
    us->votes.passed = gp_ranks_room(us, n, sizeof *us->votes.passed);
    us->votes.of = gp_ranks_room(us, n, sizeof *us->votes.of);
    us->votes.words = gp_ranks_room(us, n, sizeof *us->votes.words);
}

void gp_votes_listen(gp_ranks *us, void (*wake)(void *arg), void *arg)
{
    pthread_mutex_lock(&us->votes.lock);
    us->votes.wake = wake, us->votes.arg = arg;
    pthread_mutex_unlock(&us->votes.lock);
}

bool gp_votes_ask(gp_ranks *us, const char *line)
{
    pthread_mutex_lock(&us->votes.lock);
    bool over = us->votes.over;
    if (!over)
        append(&us->votes.out, new_ask(us, us->rank, line, strlen(line)));
    pthread_mutex_unlock(&us->votes.lock);
    return !over;
}

void gp_votes_saved(gp_ranks *us)
{
    pthread_mutex_lock(&us->votes.lock);
    us->votes.saved++;
    pthread_mutex_unlock(&us->votes.lock);
}

void gp_votes_tell(gp_ranks *us, gp_rank_says *s)
{
    pthread_mutex_lock(&us->votes.lock);
    s->ask = us->votes.out && !us->votes.over ? (int)strlen(us->votes.out->line) : 0;
    s->saved = us->votes.over ? us->votes.passed[us->rank] : us->votes.saved, s->listens = us->votes.wake != NULL;
    pthread_mutex_unlock(&us->votes.lock);
}

/* With the lock: what each has said in this round. `lines`: `most` bytes of each. */
static bool hear(gp_ranks *us, const char *lines, size_t most)
{
    bool saved = false;
    for (int r = 0; r < us->n; r++) {
        const gp_rank_says *s = gp_told_by(us, r);
        if (s->ask)
            append(&us->votes.in, new_ask(us, r, lines + (size_t)r * most, (size_t)s->ask));
        saved |= s->saved > us->votes.passed[r], us->votes.passed[r] = s->saved;
    }
    if (saved)
        append(&us->votes.in, new_ask(us, GP_ASK_FILES, us->votes.passed, (size_t)us->n * sizeof *us->votes.passed));
    return saved || most;
}

bool gp_votes_pass(gp_ranks *us, gp_errs *errs)
{
    size_t most = 0;
    bool listen = true;
    for (int r = 0; r < us->n; r++) {
        const gp_rank_says *s = gp_told_by(us, r);
        most = (size_t)s->ask > most ? (size_t)s->ask : most, listen &= s->listens;
    }
    if (!listen)                       /* a rank that has no retuner does not vote */
        return true;
    char *lines = NULL;
    if (most) {
        pthread_mutex_lock(&us->votes.lock);
        gp_ask *own = gp_told_by(us, us->rank)->ask ? first_of(&us->votes.out) : NULL;
        pthread_mutex_unlock(&us->votes.lock);
        char *mine = gp_ranks_room(us, most, 1);
        lines = gp_ranks_gather(us, own ? strcpy(mine, own->line) : mine, (int)most, false, errs);
        free(mine), free(own);
        if (!lines)
            return false;
    }
    pthread_mutex_lock(&us->votes.lock);
    void (*wake)(void *) = hear(us, lines, most) ? us->votes.wake : NULL;
    void *arg = us->votes.arg;
    pthread_mutex_unlock(&us->votes.lock);
    free(lines);
    if (wake)
        wake(arg);
    return true;
}

void gp_votes_end(gp_ranks *us)
{
    gp_ask *a;
    pthread_mutex_lock(&us->votes.lock);
    us->votes.over = true;
    while ((a = first_of(&us->votes.out)))
        free(a);
    pthread_mutex_unlock(&us->votes.lock);
}

/* Were these files saved before each rank compiled what it last voted on? */
static bool is_voted(gp_ranks *us, const gp_ask *a)
{
    bool voted = a->from == GP_ASK_FILES;
    for (int r = 0; voted && r < us->n; r++) {
        int saved;
        memcpy(&saved, a->line + (size_t)r * sizeof saved, sizeof saved);
        voted = saved <= us->votes.of[r].saved;
    }
    return voted;
}

gp_ask *gp_votes_next(gp_ranks *us)
{
    gp_ask *a;
    pthread_mutex_lock(&us->votes.lock);
    while ((a = first_of(&us->votes.in)) && is_voted(us, a))
        free(a);
    pthread_mutex_unlock(&us->votes.lock);
    return a;
}

bool gp_votes_are_asked(gp_ranks *us)
{
    pthread_mutex_lock(&us->votes.lock);
    bool asked = us->votes.in;
    pthread_mutex_unlock(&us->votes.lock);
    return asked;
}

/* ---- votes ------------------------------------------------------------------- */

bool gp_votes_cast(gp_ranks *us, gp_vote vote, bool files, const char *text, size_t len, uint64_t included, const char *words,
                   double pause_ms, double told_ms)
{
    const int ranks = us->n;
    int most = 0;
    words = words ? words : "";
    ballot mine = { vote, files ? us->votes.saved : us->votes.of[us->rank].saved, (int)strlen(words),
                    gp_ranks_hash(included, text, len), pause_ms, told_ms };
    ballot *of = gp_ranks_gather_on(us, GP_CHANNEL_VOTES, &mine, sizeof mine);
    for (int r = 0; of && r < ranks; r++)
        most = of[r].bytes > most ? of[r].bytes : most;
    char *padded = gp_ranks_room(us, (size_t)most, 1);
    char *all = of ? gp_ranks_gather_on(us, GP_CHANNEL_VOTES, strcpy(padded, words), most) : NULL;
    for (int r = 0; all && r < ranks; r++) {
        us->votes.of[r] = of[r];
        free(us->votes.words[r]);
        us->votes.words[r] = gp_ranks_room(us, (size_t)most, 1);
        memcpy(us->votes.words[r], all + (size_t)r * (size_t)most, (size_t)of[r].bytes);
    }
    free(padded), free(of), free(all);
    return all;
}

static bool has_text(gp_ranks *us, int r)
{
    return us->votes.of[r].vote == GP_VOTE_READY || us->votes.of[r].vote == GP_VOTE_SAME;
}

int gp_votes_other_text(gp_ranks *us)
{
    int first = 0;
    while (first < us->n && !has_text(us, first))
        first++;
    for (int r = first + 1; r < us->n; r++)
        if (has_text(us, r) && us->votes.of[r].text != us->votes.of[first].text)
            return r;
    return -1;
}

bool gp_votes_go(gp_ranks *us)
{
    int first;
    return gp_votes_of(us, GP_VOTE_READY, &first) && !gp_votes_of(us, GP_VOTE_REFUSED, &first)
        && gp_votes_other_text(us) < 0;
}

int gp_votes_of(gp_ranks *us, gp_vote vote, int *first)
{
    int n = 0;
    *first = -1;
    for (int r = us->n; r--;)
        if (us->votes.of[r].vote == vote)
            n++, *first = r;
    return n;
}

const char *gp_votes_words(gp_ranks *us, int rank)
{
    return us->votes.words[rank];
}

void gp_votes_changes(gp_ranks *us, char *text, size_t max, double *pause_ms, double *told_ms)
{
    char names[200];
    size_t n = 0;
    int changed = 0;
    bool *is = gp_ranks_room(us, (size_t)us->n, sizeof *is);
    *text = 0, *pause_ms = *told_ms = 0;
    for (int r = 0; r < us->n; r++) {
        const ballot *b = &us->votes.of[r];
        if (b->vote != GP_VOTE_CHANGED)
            continue;
        is[r] = true, changed++;
        *pause_ms = b->pause_ms > *pause_ms ? b->pause_ms : *pause_ms;
        *told_ms = b->told_ms > *told_ms ? b->told_ms : *told_ms;
        if (n < max && !strstr(text, gp_votes_words(us, r)))       /* a file may have another name on each rank */
            n += (size_t)snprintf(text + n, max - n, "%s%s", n ? ", " : "", gp_votes_words(us, r));
    }
    if (n < max && changed == us->n)
        snprintf(text + n, max - n, " on all %d ranks", changed);
    else if (n < max)
        snprintf(text + n, max - n, " on %s of %d", gp_ranks_names(us, is, names), us->n);
    free(is);
}
