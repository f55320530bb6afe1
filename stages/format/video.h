/* video.h - what files of video share where FFmpeg's libraries are: their functions, an open file, the look of its pictures,
 * files that are written. */
#pragma once

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/opt.h>
#include <libavutil/pixdesc.h>
#include "rows_file.h"
#include "y4m_file.h"

#if LIBAVFORMAT_VERSION_MAJOR > 60
#define GP_AV_OLD(X)
#else
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"     /* 60 has both, the newer one not in all its versions */
#define GP_AV_OLD(X) X(av_stream_get_side_data)
#endif
#define GP_AV_FUNCTIONS(X) \
    X(avformat_alloc_context) X(avformat_open_input) X(avformat_find_stream_info) X(avformat_close_input) \
    X(avformat_free_context) X(av_find_best_stream) X(av_read_frame) X(avio_alloc_context) X(avio_context_free) \
    X(avformat_index_get_entries_count) X(avformat_index_get_entry) GP_AV_OLD(X) \
    X(avcodec_find_decoder) X(avcodec_get_name) X(avcodec_alloc_context3) X(avcodec_parameters_to_context) \
    X(avcodec_open2) X(avcodec_send_packet) X(avcodec_receive_frame) X(avcodec_free_context) \
    X(av_packet_alloc) X(av_packet_free) X(av_packet_unref) \
    X(av_frame_alloc) X(av_frame_free) X(av_frame_unref) X(av_pix_fmt_desc_get) X(av_malloc) X(av_freep) \
    X(avcodec_default_get_buffer2) X(av_dict_set_int) X(av_dict_free) X(av_strerror) X(av_log_set_callback) \
    X(av_log_default_callback) \
    X(av_guess_format) X(avformat_query_codec) X(avformat_new_stream) X(avformat_write_header) X(av_write_frame) \
    X(av_write_trailer) X(avcodec_find_encoder) X(avcodec_find_encoder_by_name) X(avcodec_descriptor_get) X(avcodec_descriptor_get_by_name) \
    X(av_codec_iterate) X(av_codec_is_encoder) X(avcodec_parameters_from_context) X(avcodec_send_frame) \
    X(avcodec_receive_packet) X(av_packet_rescale_ts) X(av_frame_get_buffer) X(av_get_pix_fmt) X(av_opt_find) X(av_dict_set)
#define GP_AV_FIELD(name) __typeof__(name) *name;
extern struct gp_av { GP_AV_FUNCTIONS(GP_AV_FIELD) } gp_av;    /* gp_video_open fills it in */

typedef struct gp_look {
    gp_y4m planes;             /* size, subsampling, bits; the range as the file says */
    int from, to;              /* as gp_color_how has it */
    int matrix, range, orientation, space;     /* space: AVColorSpace, as the file says */
} gp_look;

/* Of a stream that was looked at, and the type of a frame. */
bool gp_look_at(const AVStream *st, const gp_rowsfile_how *how, gp_look *l, gp_type *frame, char err[GP_WHY]);
/* Is a picture, frame `row` of its file, as the head of the file says that all are? */
bool gp_look_alike(const gp_look *is, const AVFrame *f, int64_t row, char err[GP_WHY]);
/* As gp_color_how has it: that of a picture which does not say it. */
int gp_matrix_of_size(int64_t width, int64_t height);
/* A picture -> a frame. The room is kept from call to call. */
bool gp_look_frame(const gp_look *l, const AVFrame *f, gp_growbuf room[2], void *to, char err[GP_WHY]);

/* ---- files: video_input.c -------------------------------------------- */

typedef struct gp_video_bytes {
    int fd;                    /* negative: `head` has some, */
    const gp_rows_head *head;
    int64_t size, at;
    int error;                 /* of reading; 0: none */
} gp_video_bytes;

typedef struct gp_video_input {
    gp_video_bytes from;
    AVFormatContext *format;   /* NULL: it is not open */
    AVStream *stream;
    const AVCodec *codec;
} gp_video_input;

/* Opens `in`, whose `from` is said; close: also one that is not open. */
bool gp_video_open(gp_video_input *in, const gp_rowsfile_how *how, char err[GP_WHY]);
void gp_video_close(gp_video_input *in);
/* The type of all frames; fault: that less is there than the file says. */
bool gp_video_look(gp_video_input *in, const gp_rowsfile_how *how, gp_look *l, gp_type *whole, char fault[GP_WHY],
                   char err[GP_WHY]);
/* The next packet of the stream, or an error of FFmpeg's; what that means. */
int gp_video_packet(gp_video_input *in, AVPacket *to);
const char *gp_video_error(int error, char text[AV_ERROR_MAX_STRING_SIZE]);
/* Does what decoders say come to gp_video_hears? Not in a program that has the libraries itself. hears, in video_file.c: takes
 * what a decoder of ours says; false: it is not of such. */
bool gp_video_tells(void);
bool gp_video_hears(void *of, int level, const char *format, va_list args);

/* ---- files that are written: video_output.c -------------------------- */

/* Are the libraries there? */
bool gp_video_library(char err[GP_WHY]);
/* See gp_rowsfile. */
bool gp_video_fits(const gp_rowsfile_how *how, const char *path, char note[GP_WHY], char err[GP_WHY]);
gp_rows_out *gp_video_create(int fd, const gp_rowsfile_how *how, const gp_type *frame, const char *path, char err[GP_WHY]);
bool gp_video_append(gp_rows_out *o, const void *rows, int64_t n, char err[GP_WHY]);
bool gp_video_finish(gp_rows_out *o, char err[GP_WHY]);
/* As gp_video_hears, of encoders and containers. */
bool gp_video_writes(void *of, int level, const char *format, va_list args);
