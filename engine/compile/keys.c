/* keys.c - see keys.h. */
#include <string.h>
#include "compile/keys.h"

#define KEY(n, t) .name = n, .type = GP_OPT_##t

const gp_opt gp_top_keys[] = {
    { KEY("pipeline", TEXT), .help = "its name; default: the file's" },
    { KEY("device", TEXTS), .def = "auto", .help = "auto, cpu, cuda, cuda:N, all, cuda:0-3 or [cuda:0, cuda:2]" },
    { KEY("depth", INT), .def = "auto", .min = 1, .max = GP_DEPTH_MAX,
      .help = "slots of each buffer; auto: 6, 3 of large frames, more beside several workers and for small ones" },
    { KEY("streams", INT), .def = "auto", .min = 1, .max = 1024,
      .help = "launches of a segment in flight; auto: its buffers' depth, at most 8" },
    { KEY("batch", INT), .def = "auto", .min = 1, .max = GP_DEPTH_MAX, .help = "the most frames a launch takes" },
    { KEY("batch_wait", TIME), .max = 1e9, .help = "how long a launch may wait to fill its batch; 0: not at all" },
    { KEY("latency", TIME), .help = "launches are as long as 99 frames in 100 can be and end within this time" },
    { KEY("deadline", TIME), .help = "of stages on the host that say none: a frame that is older when it is taken is dropped" },
    { KEY("launch", ENUM), .choices = "graph|stream|persistent",
      .help = "graph: a CUDA graph a launch; stream: calls one by one; persistent: kernels that stay on the GPU" },
    { KEY("sync", ENUM), .choices = "auto|spin|yield|block", .help = "how to wait for the device" },
    { KEY("copies", ENUM), .choices = "auto|dma|mapped",
      .help = "dma: copy engines move frames between host and GPU; mapped: kernels do; auto: those of few bytes" },
    { KEY("priority", ENUM), .def = "normal", .choices = "high|normal|low",
      .help = "whose work comes first on the GPU and on a core, of stages that say none" },
    { KEY("fuse", ENUM), .choices = "auto|none",
      .help = "auto: stages next to each other that compute element by element are one kernel" },
    { KEY("on_error", ENUM), .choices = "stop|drop",
      .help = "when a frame fails: stop: the run ends; drop: a warning, and it goes on without that frame" },
    { KEY("stall_timeout", TIME),
      .help = "gives up when nothing moved and nobody was at work for this long; 0: never" },
    { KEY("resume", PATH),
      .help = "a file that notes how far a run has come, while it goes on: the next run begins there, if this one is broken off; \"\": none" },
    { KEY("recorded", NODE), .help = "what 'gpipe run --record' noted of a run, which this file repeats" },
    { KEY("metadata", NODE), .help = "names of numbers that may travel with frames" },
    { KEY("vars", NODE), .help = "names of values for expressions and ${}; null: has to be given, with --set" },
    { KEY("buffers", NODE), .help = "types and depths of buffers, constants; what is not said is inferred" },
    { KEY("stages", NODE), .required = true, .help = "what is done to frames, in order" },
    { KEY("inputs", NODE), .help = "of a file that others include: names of the buffers that they give it, also with types" },
    { KEY("outputs", NODE), .help = "of a file that others include: names of the buffers that it gives them, also with types" },
    { 0 }
};

#define REPEAT { KEY("repeat", NODE), .help = "a copy for each value: {over: {i: [a, b]}}, {over: {i: 8}} for 0 to 7" }

const gp_opt gp_include_keys[] = {
    { KEY("include", PATH), .required = true, .help = "a file with stages, which are named NAME.STAGE here" },
    { KEY("name", TEXT), .help = "default: the file's, without its ending" },
    { KEY("in", NODE), .help = "the buffers that are its inputs; default: of one, the output of the stage before" },
    { KEY("out", NODE), .help = "names for its outputs; default: of one NAME, of several NAME.OUTPUT" },
    { KEY("vars", NODE), .help = "values for its variables" },
    REPEAT,
    { 0 }
};

const gp_opt gp_branch_keys[] = {
    { KEY("stages", NODE), .required = true, .help = "stages, which are named NAME.STAGE outside" },
    { KEY("name", TEXT), .help = "default: branch" },
    { KEY("in", TEXT), .help = "the buffer that its first stage reads; default: the output of the stage before" },
    { KEY("buffers", NODE), .help = "types and depths of its buffers, constants" },
    REPEAT,
    { 0 }
};

const gp_opt gp_var_keys[] = {
    { KEY("type", ENUM), .choices = gp_var_types, .help = "what its value must be" },
    { KEY("default", TEXT), .help = "its value, if none is given" },
    { KEY("help", TEXT), .help = "what it is for" },
    { 0 }
};

const char gp_var_types[] = "integer|number|bool|text|path|time|dtype";

gp_opt_type gp_var_type(int word)
{
    static const gp_opt_type type[] = { GP_OPT_INT, GP_OPT_FLOAT, GP_OPT_BOOL, GP_OPT_TEXT, GP_OPT_PATH, GP_OPT_TIME,
                                        GP_OPT_DTYPE };
    return type[word];
}

const gp_opt gp_stage_keys[] = {
    { KEY("name", TEXT), .help = "default: its kind" },
    { KEY("use", TEXT), .required = true, .help = "its kind; 'gpipe stages' lists them" },
    { KEY("in", NODE), .help = "the buffers it reads; default: the output of the stage before" },
    { KEY("out", NODE), .help = "the buffers it makes; default: one, with the name of the stage" },
    { KEY("on", ENUM), .choices = "host|device", .help = "where it runs, if its kind can do both" },
    { KEY("device", TEXT), .help = "the one device that it runs on, as cuda:1; default: those of the pipeline" },
    { KEY("workers", INT), .def = "auto", .min = 1, .max = 1024, .help = "threads of a stage on the host" },
    { KEY("priority", ENUM), .choices = "high|normal|low",
      .help = "whether its work comes before or behind that of others, on the GPU and on a core" },
    { KEY("when_full", ENUM), .def = "wait", .choices = "wait|drop-newest|drop-oldest",
      .help = "on the host: when frames come faster than it takes them, those before it wait, or some are dropped" },
    { KEY("deadline", TIME), .help = "on the host: a frame that is older when the stage takes it is dropped; 0: none is" },
    { KEY("zero", BOOL), .help = "outputs are 0 before the stage runs" },
    { KEY("on_hole", ENUM), .choices = "reset|splice", .help = "after a missing frame: start anew, or go on" },
    { KEY("on_error", ENUM), .choices = "stop|drop", .help = "when a frame fails in this stage of the host" },
    { KEY("max_dropped", NODE), .help = "how many of its frames may fail: 20, or 1%" },
    { KEY("window", NODE), .help = "{PORT: 8}: the input is each frame together with those before it" },
    { KEY("shard", ENUM), .def = "auto", .choices = "auto|none",
      .help = "of a source, in a run of several ranks: each makes a share of its frames (auto), or all of them (none)" },
    REPEAT,
    { 0 }
};

const gp_opt gp_buffer_keys[] = {
    { KEY("dtype", DTYPE), .help = "the type of its elements" },
    { KEY("shape", NODE), .help = "[480, 640, 3]; \"<=480\": at most, for frames that differ" },
    { KEY("depth", INT), .min = 1, .max = GP_DEPTH_MAX, .help = "its number of slots" },
    { KEY("like", TEXT), .help = "a buffer that has the same type, where that is not said here" },
    { KEY("const", NODE), .help = "a .npy file, which is loaded once, or a list of numbers" },
    { KEY("memory", ENUM), .choices = "device|managed",
      .help = "of a constant that a GPU reads, or of slots on it: in its memory, or in the host's, from where it "
              "fetches what it needs" },
    { KEY("carry", TEXT), .help = "a buffer: frame k of this one is frame k - 1 of that" },
    { KEY("state", BOOL), .help = "one place in memory, which stages on the device read and change, in the order of the file" },
    { KEY("init", TEXT), .help = "frame 0 of what is carried, or a state before it: a number, or a .npy file" },
    { KEY("missing", TEXT), .help = "a number in place of the file of 'init' where that is not there yet" },
    { KEY("save", TEXT), .help = "of a state: the .npy file that has it once the run has ended, to begin with ('init')" },
    { KEY("save_every", INT), .min = 1, .max = 1e12, .help = "of a state: it is saved behind each so many frames, too" },
    { KEY("on_hole", ENUM), .choices = "reset|splice", .help = "after a missing frame: 'init' again, or the last one" },
    { 0 }
};

gp_near gp_key_near(const gp_opt *keys, const char *word)
{
    gp_near near = GP_NEAR(word);
    for (; keys->name; keys++)
        gp_near_try(&near, keys->name);
    return near;
}

const gp_opt *gp_key_find(const gp_opt *keys, const char *name)
{
    for (; keys->name; keys++)
        if (!strcmp(keys->name, name))
            return keys;
    return NULL;
}
