/* shim.c - gpipe-mpi.so: MPI behind the table of shim.h. Built by the `mpicc` of the MPI whose launcher is used. */
#include <mpi.h>
#include <string.h>
#include "mpi/shim.h"

/* Communicators of gpipe alone, as a library in the same process may use MPI, too: one for each channel. */
enum { CHANNELS = 66 };
static struct { MPI_Comm all; MPI_Request request; } channel[CHANNELS];
static int nchannels;

/* From one rank to another, with a tag for each sort. */
enum { CALL = 1, PASS = 2 };
static struct { MPI_Comm of; int rank; MPI_Request request; } direct;

static const char *text(int error)
{
    static char text[MPI_MAX_ERROR_STRING + 1];
    int n = 0;
    if (error == MPI_SUCCESS)
        return NULL;
    if (MPI_Error_string(error, text, &n) != MPI_SUCCESS)
        return "MPI failed and does not say why";
    text[n] = 0;
    return text;
}

static int here;                       /* ranks on this machine */

static int local_ranks(void)
{
    return here;
}

/* The next step, if all before it went well. */
#define TRY(step) (error = error == MPI_SUCCESS ? (step) : error)

static const char *start(int *rank, int *ranks, int *local_rank)
{
    MPI_Comm local, all_ranks = MPI_COMM_NULL;
    int level, error = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level);
    if (error == MPI_SUCCESS && level < MPI_THREAD_SERIALIZED)
        return "it was built without threads (MPI_THREAD_SERIALIZED)";
    /* Errors of requests that are of no communicator, as a gather's, are theirs: else they end the process. */
    TRY(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    TRY(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    TRY(MPI_Comm_dup(MPI_COMM_WORLD, &all_ranks));     /* whose errors return as well */
    TRY(MPI_Comm_dup(all_ranks, &direct.of));
    TRY(MPI_Comm_rank(all_ranks, rank));
    TRY(MPI_Comm_size(all_ranks, ranks));
    TRY(MPI_Comm_split_type(all_ranks, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &local));
    TRY(MPI_Comm_rank(local, local_rank));
    TRY(MPI_Comm_size(local, &here));
    direct.rank = *rank, direct.request = MPI_REQUEST_NULL;
    channel[0].all = all_ranks, channel[0].request = MPI_REQUEST_NULL, nchannels = 1;
    return text(error);
}

static const char *open_channels(int n)
{
    int error = MPI_SUCCESS;
    if (n > CHANNELS - nchannels)
        return "there are more than 64 collectives";
    for (; n-- && error == MPI_SUCCESS; nchannels++) {
        channel[nchannels].request = MPI_REQUEST_NULL;
        error = MPI_Comm_dup(channel[0].all, &channel[nchannels].all);     /* errors return, as those of the first */
    }
    return text(error);
}

static const char *gather(int c, const void *mine, int n, void *all)
{
    return text(MPI_Iallgather(mine, n, MPI_BYTE, all, n, MPI_BYTE, channel[c].all, &channel[c].request));
}

static const char *gathered(int c, bool *done)
{
    int flag = 0, error = MPI_Test(&channel[c].request, &flag, MPI_STATUS_IGNORE);
    *done = flag;
    return text(error);
}

/* So short a message is on its way when it is sent, whether or not the other takes it. */
static const char *call(int to, long number)
{
    return text(MPI_Send(&number, 1, MPI_LONG, to, CALL, direct.of));
}

static const char *heard(long *of)
{
    MPI_Status from;
    int there = 1, error = MPI_SUCCESS;
    while (there && error == MPI_SUCCESS) {
        long number = 0;
        error = MPI_Iprobe(MPI_ANY_SOURCE, CALL, direct.of, &there, &from);
        if (error == MPI_SUCCESS && there)
            error = MPI_Recv(&number, 1, MPI_LONG, from.MPI_SOURCE, CALL, direct.of, MPI_STATUS_IGNORE);
        if (error == MPI_SUCCESS && there && number > of[from.MPI_SOURCE])
            of[from.MPI_SOURCE] = number;
    }
    return text(error);
}

static const char *pass(int from, int to, void *data, int n)
{
    return text(from == direct.rank ? MPI_Isend(data, n, MPI_BYTE, to, PASS, direct.of, &direct.request)
                                    : MPI_Irecv(data, n, MPI_BYTE, from, PASS, direct.of, &direct.request));
}

static const char *passed(bool *done)
{
    int flag = 0, error = MPI_Test(&direct.request, &flag, MPI_STATUS_IGNORE);
    *done = flag;
    return text(error);
}

static const char *leave(void)
{
    return text(MPI_Finalize());
}

static const char *library(void)
{
    static char name[MPI_MAX_LIBRARY_VERSION_STRING + 1];
    int n = 0;
    if (MPI_Get_library_version(name, &n) != MPI_SUCCESS)
        n = 0;
    name[n] = 0;
    name[strcspn(name, ",\n")] = 0;            /* what follows is how it was built */
    return name;
}

extern const gp_mpi GP_MPI_TABLE;
__attribute__((visibility("default"))) const gp_mpi GP_MPI_TABLE = {
    .size = sizeof(gp_mpi), .start = start, .open_channels = open_channels, .gather = gather, .gathered = gathered,
    .call = call, .heard = heard, .pass = pass,
    .passed = passed, .leave = leave, .library = library, .local_ranks = local_ranks,
};
