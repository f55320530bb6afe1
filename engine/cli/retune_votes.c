/* retune_votes.c - of several ranks one is asked for a change, and all are changed, or none: see retune_votes.h.
 *
 * What a rank is asked for goes with the rounds (ranks_run.c), of which all see the same: so all begin the same changes,
 * in one order. Votes are gathered on a channel of their own. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "cli/ranks_told.h"
#include "cli/retune_votes.h"

typedef struct ballot { gp_vote vote; int saved, bytes; uint64_t text; double pause_ms, told_ms; } ballot;

static struct {
    pthread_mutex_t lock;              /* of what follows */
    gp_ask *out, *in;                  /* the first of those that all are to hear, that all have heard */
    bool over;
    void (*wake)(void *);
    void *arg;
    int saved;                         /* how often this rank saw files saved */
    int *passed;                       /* the thread's that has the rounds: what each had said of that */
    ballot *of;                        /* the retuner's: the last vote of each, with these words */
    char **words;
} votes = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- what is asked for ----------------------------------------------------- */

static gp_ask *new_ask(int from, const void *data, size_t n)
{
    gp_ask *a = gp_ranks_room(1, sizeof *a + n + 1);
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

void gp_votes_open(void)
{
    const size_t n = (size_t)gp_ranks();
    votes.passed = gp_ranks_room(n, sizeof *votes.passed), votes.of = gp_ranks_room(n, sizeof *votes.of);
    votes.words = gp_ranks_room(n, sizeof *votes.words);
}

void gp_votes_listen(void (*wake)(void *arg), void *arg)
{
    pthread_mutex_lock(&votes.lock);
    votes.wake = wake, votes.arg = arg;
    pthread_mutex_unlock(&votes.lock);
}

bool gp_votes_ask(const char *line)
{
    pthread_mutex_lock(&votes.lock);
    bool over = votes.over;
    if (!over)
        append(&votes.out, new_ask(gp_rank(), line, strlen(line)));
    pthread_mutex_unlock(&votes.lock);
    return !over;
}

void gp_votes_saved(void)
{
    pthread_mutex_lock(&votes.lock);
    votes.saved++;
    pthread_mutex_unlock(&votes.lock);
}

void gp_votes_tell(gp_rank_says *s)
{
    pthread_mutex_lock(&votes.lock);
    s->ask = votes.out && !votes.over ? (int)strlen(votes.out->line) : 0;
    s->saved = votes.over ? votes.passed[gp_rank()] : votes.saved, s->listens = votes.wake != NULL;
    pthread_mutex_unlock(&votes.lock);
}

/* With the lock: what each has said in this round. `lines`: `most` bytes of each. */
static bool hear(const char *lines, size_t most)
{
    bool saved = false;
    for (int r = 0; r < gp_ranks(); r++) {
        const gp_rank_says *s = gp_told_by(r);
        if (s->ask)
            append(&votes.in, new_ask(r, lines + (size_t)r * most, (size_t)s->ask));
        saved |= s->saved > votes.passed[r], votes.passed[r] = s->saved;
    }
    if (saved)
        append(&votes.in, new_ask(GP_ASK_FILES, votes.passed, (size_t)gp_ranks() * sizeof *votes.passed));
    return saved || most;
}

bool gp_votes_pass(gp_errs *errs)
{
    size_t most = 0;
    bool listen = true;
    for (int r = 0; r < gp_ranks(); r++) {
        const gp_rank_says *s = gp_told_by(r);
        most = (size_t)s->ask > most ? (size_t)s->ask : most, listen &= s->listens;
    }
    if (!listen)                       /* a rank that has no retuner does not vote */
        return true;
    char *lines = NULL;
    if (most) {
        pthread_mutex_lock(&votes.lock);
        gp_ask *own = gp_told_by(gp_rank())->ask ? first_of(&votes.out) : NULL;
        pthread_mutex_unlock(&votes.lock);
        char *mine = gp_ranks_room(most, 1);
        lines = gp_ranks_gather(own ? strcpy(mine, own->line) : mine, (int)most, errs);
        free(mine), free(own);
        if (!lines)
            return false;
    }
    pthread_mutex_lock(&votes.lock);
    void (*wake)(void *) = hear(lines, most) ? votes.wake : NULL;
    void *arg = votes.arg;
    pthread_mutex_unlock(&votes.lock);
    free(lines);
    if (wake)
        wake(arg);
    return true;
}

void gp_votes_end(void)
{
    gp_ask *a;
    pthread_mutex_lock(&votes.lock);
    votes.over = true;
    while ((a = first_of(&votes.out)))
        free(a);
    pthread_mutex_unlock(&votes.lock);
}

/* Were these files saved before each rank compiled what it last voted on? */
static bool is_voted(const gp_ask *a)
{
    bool voted = a->from == GP_ASK_FILES;
    for (int r = 0; voted && r < gp_ranks(); r++) {
        int saved;
        memcpy(&saved, a->line + (size_t)r * sizeof saved, sizeof saved);
        voted = saved <= votes.of[r].saved;
    }
    return voted;
}

gp_ask *gp_votes_next(void)
{
    gp_ask *a;
    pthread_mutex_lock(&votes.lock);
    while ((a = first_of(&votes.in)) && is_voted(a))
        free(a);
    pthread_mutex_unlock(&votes.lock);
    return a;
}

bool gp_votes_are_asked(void)
{
    pthread_mutex_lock(&votes.lock);
    bool asked = votes.in;
    pthread_mutex_unlock(&votes.lock);
    return asked;
}

/* ---- votes ------------------------------------------------------------------- */

bool gp_votes_cast(gp_vote vote, bool files, uint64_t text, const char *words, double pause_ms, double told_ms)
{
    const int me = gp_rank(), ranks = gp_ranks();
    int most = 0;
    words = words ? words : "";
    ballot mine = { vote, files ? votes.saved : votes.of[me].saved, (int)strlen(words), text, pause_ms, told_ms };
    ballot *of = gp_ranks_gather_on(GP_CHANNEL_VOTES, &mine, sizeof mine);
    for (int r = 0; of && r < ranks; r++)
        most = of[r].bytes > most ? of[r].bytes : most;
    char *padded = gp_ranks_room((size_t)most, 1);
    char *all = of ? gp_ranks_gather_on(GP_CHANNEL_VOTES, strcpy(padded, words), most) : NULL;
    for (int r = 0; all && r < ranks; r++) {
        votes.of[r] = of[r];
        free(votes.words[r]);
        votes.words[r] = memcpy(gp_ranks_room((size_t)most, 1), all + (size_t)r * (size_t)most, (size_t)of[r].bytes);
    }
    free(padded), free(of), free(all);
    return all;
}

static bool has_text(int r)
{
    return votes.of[r].vote == GP_VOTE_READY || votes.of[r].vote == GP_VOTE_SAME;
}

int gp_votes_other_text(void)
{
    int first = 0;
    while (first < gp_ranks() && !has_text(first))
        first++;
    for (int r = first + 1; r < gp_ranks(); r++)
        if (has_text(r) && votes.of[r].text != votes.of[first].text)
            return r;
    return -1;
}

bool gp_votes_go(void)
{
    int first;
    return gp_votes_of(GP_VOTE_READY, &first) && !gp_votes_of(GP_VOTE_REFUSED, &first) && gp_votes_other_text() < 0;
}

int gp_votes_of(gp_vote vote, int *first)
{
    int n = 0;
    *first = -1;
    for (int r = gp_ranks(); r--;)
        if (votes.of[r].vote == vote)
            n++, *first = r;
    return n;
}

const char *gp_votes_words(int rank)
{
    return votes.words[rank];
}

void gp_votes_changes(char *text, size_t max, double *pause_ms, double *told_ms)
{
    char names[200];
    size_t n = 0;
    int changed = 0;
    bool *is = gp_ranks_room((size_t)gp_ranks(), sizeof *is);
    *text = 0, *pause_ms = *told_ms = 0;
    for (int r = 0; r < gp_ranks(); r++) {
        const ballot *b = &votes.of[r];
        if (b->vote != GP_VOTE_CHANGED)
            continue;
        is[r] = true, changed++;
        *pause_ms = b->pause_ms > *pause_ms ? b->pause_ms : *pause_ms;
        *told_ms = b->told_ms > *told_ms ? b->told_ms : *told_ms;
        if (n < max && !strstr(text, gp_votes_words(r)))       /* a file may have another name on each rank */
            n += (size_t)snprintf(text + n, max - n, "%s%s", n ? ", " : "", gp_votes_words(r));
    }
    if (n < max && changed == gp_ranks())
        snprintf(text + n, max - n, " on all %d ranks", changed);
    else if (n < max)
        snprintf(text + n, max - n, " on %s of %d", gp_ranks_names(is, names), gp_ranks());
    free(is);
}
