/* machine_file.h - a machine as JSON: what `gpipe machine` prints, and a person may write (machine_file.c). */
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "compile/ir.h"

typedef struct gp_machine_file {
    gp_machine machine;        /* for the passes */
    bool says_devices;         /* ... which are of the file: by 'devices' or 'gpu'; */
    bool says_cores;           /* ... and so are these */
    gp_loc at;
    double host_speed;         /* of a core, and of the device: this many times as fast as that of a report */
    double device_speed;       /* 0: not said */
    double copy_in, copy_out;  /* bytes a second; 0: not said */
    double memory;             /* ... of all copies between the host and its devices together; 0: not said */
    gp_link peer;              /* from one GPU to another of this machine, */
    gp_link process;           /* from a process to another of this machine, */
    gp_link network;           /* from this machine to another, by all of its adapters */
    double nccl_ns;            /* of an operation of NCCL, beside */
} gp_machine_file;

/* Reads a JSON or YAML text, whose keys are all optional; what it does not say is as in `m`. False after an error,
 * which has a place in `file`. */
bool gp_machine_file_read(gp_arena *a, const char *text, size_t len, const char *file, const gp_machine *m,
                          gp_machine_file *out, gp_errs *errs);

/* A device's `launch`, as a member of an object. */
void gp_launch_json(gp_json *j, const gp_link launch[GP_COPYINGS]);
bool gp_launch_read(const gp_node *of, gp_link launch[GP_COPYINGS], gp_errs *errs);

/* machine.c: measures launches on the GPUs of this machine, which takes a part of a second each, and keeps that on disk,
 * where this and later processes find it. */
bool gp_machine_measure(gp_machine *m, gp_errs *errs);
