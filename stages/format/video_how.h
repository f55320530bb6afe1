/* video_how.h - what options say of a video that is written, and the containers that can be. */
#pragma once

#include "files.h"

typedef struct gp_video_how {
    const char *codec, *preset;        /* ""; a codec, or an encoder of libavcodec; as the encoder calls it */
    double crf;                        /* constant quality, as the encoder counts it; negative: not said */
    int64_t bitrate;                   /* bit/s; 0: not said */
    int matrix;                        /* as gp_color_how has it; negative: by the size */
    int from, to;                      /* the same: what frames are; what is stored, negative: not said */
    const char *times;                 /* which of the frames' numbers says when they are, "pts" or "time"; NULL: their rate */
    bool live;                         /* it can be read at any time, as far as it was written */
} gp_video_how;

/* Of a file with such a name, as libavformat calls it; NULL: it is not written. */
const char *gp_video_container(const char *path);
#define GP_VIDEO_CONTAINERS ".mp4, .m4v, .mov, .mkv and .webm"
