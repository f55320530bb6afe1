/* retune_votes.c - what ranks say of a change that one of them is asked for: see retune_votes.h. */
#include <stdlib.h>
#include <string.h>
#include "cli/retune_votes.h"

/* In front of the words of a note; vote NOT: they ask for a change. */
typedef struct said { gp_vote vote; uint64_t text; double pause_ms, told_ms; } said;

static struct {
    said *first, *second;              /* of each rank, in this change */
    char **words;                      /* with the last of both, for free() */
    bool files, begun;                 /* it is about files that were saved; a change is under way */
    gp_note *later, **last;            /* what is asked for meanwhile */
} votes = { .last = &votes.later };

static said said_by(const gp_note *note)
{
    said s = { .vote = GP_VOTE_NOT };
    if (note->n >= sizeof s)
        memcpy(&s, note->text, sizeof s);
    return s;
}

const char *gp_votes_line(const gp_note *note)
{
    return note->n >= sizeof(said) ? note->text + sizeof(said) : "";
}

static bool send(said s, const char *words)
{
    size_t n = strlen(words);
    char *text = gp_ranks_room(sizeof s + n, 1);
    memcpy(text, &s, sizeof s);
    memcpy(text + sizeof s, words, n);
    bool sent = gp_ranks_note(text, sizeof s + n);
    free(text);
    return sent;
}

bool gp_votes_ask(const char *line)
{
    return send((said){ .vote = GP_VOTE_NOT }, line);
}

void gp_votes_say(gp_vote vote, uint64_t text, const char *words, double pause_ms, double told_ms)
{
    send((said){ vote, text, pause_ms, told_ms }, words ? words : "");
}

static void count(gp_note *note, said s)
{
    said *of = votes.first[note->from].vote == GP_VOTE_NOT ? votes.first : votes.second;
    of[note->from] = s;
    free(votes.words[note->from]);
    votes.words[note->from] = strcpy(gp_ranks_room(note->n + 1, 1), gp_votes_line(note));
}

bool gp_votes_take(gp_note *note)
{
    said s = said_by(note);
    bool asks = s.vote == GP_VOTE_NOT;
    if (asks && !votes.begun)
        return true;
    if (!asks && votes.begun)
        count(note, s);
    if (asks && (*gp_votes_line(note) || !votes.files || votes.first[note->from].vote != GP_VOTE_NOT))
        note->next = NULL, *votes.last = note, votes.last = &note->next;
    else
        free(note);
    return false;
}

gp_note *gp_votes_next(void)
{
    gp_note *note = votes.later;
    if (note && !(votes.later = note->next))
        votes.last = &votes.later;
    return note;
}

void gp_votes_begin(const gp_note *ask)
{
    size_t n = (size_t)gp_ranks();
    votes.first = gp_ranks_room(n, sizeof *votes.first), votes.second = gp_ranks_room(n, sizeof *votes.second);
    votes.words = gp_ranks_room(n, sizeof *votes.words);
    votes.begun = true, votes.files = !*gp_votes_line(ask);
}

void gp_votes_end(void)
{
    for (int r = 0; r < gp_ranks(); r++)
        free(votes.words[r]);
    free(votes.first), free(votes.second), free(votes.words);
    votes.begun = false;
}

bool gp_votes_have(bool second)
{
    bool all = true;
    for (int r = 0; r < gp_ranks(); r++)
        all &= votes.first[r].vote != GP_VOTE_NOT;
    for (int r = 0; second && all && gp_votes_go() && r < gp_ranks(); r++)
        all &= votes.first[r].vote != GP_VOTE_READY || votes.second[r].vote != GP_VOTE_NOT;
    return all;
}

static bool has_text(int r)
{
    return votes.first[r].vote == GP_VOTE_READY || votes.first[r].vote == GP_VOTE_SAME;
}

int gp_votes_other_text(void)
{
    int first = 0;
    while (first < gp_ranks() && !has_text(first))
        first++;
    for (int r = first + 1; r < gp_ranks(); r++)
        if (has_text(r) && votes.first[r].text != votes.first[first].text)
            return r;
    return -1;
}

bool gp_votes_go(void)
{
    int ready = 0, not = 0;
    for (int r = 0; r < gp_ranks(); r++) {
        gp_vote v = votes.first[r].vote;
        ready += v == GP_VOTE_READY, not += v == GP_VOTE_REFUSED || v == GP_VOTE_NOT;
    }
    return ready && !not && gp_votes_other_text() < 0;
}

int gp_votes_of(gp_vote vote, int *first)
{
    int n = 0;
    *first = -1;
    for (int r = gp_ranks(); r--;)
        if ((votes.second[r].vote ? votes.second : votes.first)[r].vote == vote)
            n++, *first = r;
    return n;
}

const char *gp_votes_words(int rank)
{
    return votes.words[rank] ? votes.words[rank] : "";
}

void gp_votes_changes(char *text, size_t max, double *pause_ms, double *told_ms)
{
    char names[200];
    size_t n = 0;
    int changed = 0;
    bool *is = gp_ranks_room((size_t)gp_ranks(), sizeof *is);
    *text = 0, *pause_ms = *told_ms = 0;
    for (int r = 0; r < gp_ranks(); r++) {
        const said *s = &votes.second[r];
        if (s->vote != GP_VOTE_CHANGED)
            continue;
        is[r] = true, changed++;
        *pause_ms = s->pause_ms > *pause_ms ? s->pause_ms : *pause_ms;
        *told_ms = s->told_ms > *told_ms ? s->told_ms : *told_ms;
        if (n < max && !strstr(text, gp_votes_words(r)))       /* a file may have another name on each rank */
            n += (size_t)snprintf(text + n, max - n, "%s%s", n ? ", " : "", gp_votes_words(r));
    }
    if (n < max && changed == gp_ranks())
        snprintf(text + n, max - n, " on all %d ranks", changed);
    else if (n < max)
        snprintf(text + n, max - n, " on %s of %d", gp_ranks_names(is, names), gp_ranks());
    free(is);
}
