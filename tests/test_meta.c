/* test_meta.c - numbers that travel with frames: on the CPU back end, in files, and what is refused. */
#include "../stages/format/filemeta.h"
#include "meta_cases.h"

/* ---- from pipeline to pipeline ---------------------------------------- */

/* Numbers whose digits are hard to get right: all come back with the same bits. */
#define NUMBERS "{0.1, 1/3, -0.0, 5e-324, 1.7976931348623157e308, 123456789012, 1e22, 44100.5}"

static void put_files(const char *dir)
{
    meta_put_scripts(dir);
    pipe_text(dir, "hard.lua", "local v = " NUMBERS "\nfunction process(frame, x, y)\n  y:copy(x)\n"
              "  frame.meta.exposure = v[frame.index + 1]\n"
              "  if frame.index % 2 == 1 then frame.meta.sample_rate = frame.index end\nend\n");
    pipe_text(dir, "same.lua", "local v = " NUMBERS "\nfunction process(frame, x)\n"
              "  local m, i = frame.meta, frame.index\n"
              "  assert(m.exposure == v[i + 1] and 1 / m.exposure == 1 / v[i + 1], m.exposure)\n"
              "  assert(m.sample_rate == (i % 2 == 1 and i or nil), m.sample_rate)\nend\n"
              "function finish() end\n");
}

static const struct { const char *write, *read; } forms[] = {
    { "path: 'p%05d.png'", "path: 'p%05d.png'" },
    { "path: 'p%05d.png', compression: 0, workers: 3", "path: 'p*.png', workers: 2" },
    { "path: 'p%05d.tif'", "path: 'p%05d.tif'" },
    { "path: 'p%05d.tif', compression: 3, workers: 2", "path: 'p%05d.tif'" },
    { "path: p.tif", "path: p.tif" },
    { "path: p.tif, compression: 9", "path: p.tif, workers: 3" },
    { "path: p.btf", "path: p.btf" },
};

TEST_EACH(comes_back, forms)
{
    const char *dir = pipe_dir();
    put_files(dir);
    char *yaml = format("metadata: [exposure, sample_rate, other]\n"
        "buffers: {x: {dtype: u8, shape: [5, 7]}}\nstages:\n"
        "  - {use: generate, frames: 8, out: x}\n  - {use: lua, script: hard.lua, out: y}\n"
        "  - {use: expr, expr: y + 1, in: y, out: z}\n  - {use: cast, dtype: u8}\n  - {use: write, %s}\n",
        forms[_i].write);
    pipe_result r = pipe_done(dir, yaml, "cpu", NULL, (gp_run_options){ 0 });
    yaml = format("metadata: [another, sample_rate, exposure]\nstages:\n"
                  "  - {use: read, %s}\n  - {use: lua, script: same.lua, out: []}\n", forms[_i].read);
    r = pipe_done(dir, yaml, "cpu", NULL, (gp_run_options){ 0 });
    ck_assert_uint_eq(r.account[0].out, 8);
}

/* The bytes of files have no numbers, the pictures that are decoded what the files say. */
TEST_LOOP(decoded, 0, 3)
{
    const char *dir = pipe_dir();
    put_files(dir);
    pipe_result r = pipe_done(dir, "metadata: [exposure, sample_rate, time]\nbuffers: {x: {dtype: u8, shape: [5, 7]}}\n"
                              "stages:\n  - {use: generate, frames: 8, out: x}\n"
                              "  - {use: lua, script: hard.lua, out: y}\n"
                              "  - {use: write, path: 'p%05d.png'}\n", "cpu", NULL, (gp_run_options){ 0 });
    char *yaml = format("metadata: [exposure, sample_rate, time, another]\ndepth: %d\n"
                        "buffers: {photo: {dtype: u8, shape: [5, 7]}}\nstages:\n"
                        "  - {use: read, path: 'p*.png', format: bytes, out: coded}\n"
                        "  - {use: decode, in: coded, out: photo, workers: %d}\n"
                        "  - {use: write, path: '%%n-again.png', in: photo}\n"
                        "  - {use: lua, script: same.lua, in: photo, out: []}\n", 1 + 4 * _i, 1 + _i);
    r = pipe_done(dir, yaml, "cpu", NULL, (gp_run_options){ 0 });
    ck_assert_uint_eq(r.account[0].out, 8);
    for (int i = 0; i < 8; i++) {              /* the time is among the bytes */
        size_t n[2];
        OWNED char *was = pipe_read(dir, format("p%05d.png", i), &n[0]);
        OWNED char *is = pipe_read(dir, format("p%05d-again.png", i), &n[1]);
        ck_assert_msg(is && n[0] == n[1] && !memcmp(was, is, n[0]), "frame %d", i);
    }
}

/* A list that no frame has numbers for changes no byte; neither do numbers in formats that have no place for them. */
static const struct { const char *name, *script; } plain[] = {
    { "p.png", "mark.lua" }, { "p.tif", "mark.lua" }, { "p.pgm", "hard.lua" }, { "p.npy", "hard.lua" },
    { "p.jpg", "hard.lua" }, { "p.csv", "hard.lua" },
};

TEST_EACH(same_bytes, plain)
{
    const char *dir = pipe_dir();
    char *bytes[2];
    size_t n[2];
    put_files(dir);
    for (int k = 0; k < 2; k++) {
        char *yaml = format("%sbuffers: {x: {dtype: u8, shape: [5, 7]}}\nstages:\n"
            "  - {use: generate, frames: 1, out: x}\n  - {use: lua, script: %s, out: y}\n  - {use: write, path: %s}\n",
            k ? "metadata: [exposure, sample_rate]\n" : "", k ? plain[_i].script : "mark.lua", plain[_i].name);
        pipe_done(dir, yaml, "cpu", NULL, (gp_run_options){ 0 });
        bytes[k] = pipe_read(dir, plain[_i].name, &n[k]);
    }
    ck_assert_msg(n[0] == n[1] && !memcmp(bytes[0], bytes[1], n[0]), "%s", plain[_i].name);
    free(bytes[0]), free(bytes[1]);
}

/* The time goes with the frame, to the nanosecond: what is written again has the same bytes. */
TEST(time_comes_back)
{
    static const char *const form[] = { "png", "tif" };
    char yaml[1000];
    size_t n[2];
    const char *dir = pipe_dir();
    pipe_text(dir, "then.lua", "function produce(frame, y)\n  y:fill(frame.index)\n  frame.time = 1e9 + frame.index\n"
              "  return frame.index < 5\nend\n");
    pipe_text(dir, "same.lua", "function process(frame, x)\n  assert(frame.time == 1e9 + frame.index)\nend\n");
    for (int k = 0; k < 4; k++) {          /* a time that is set, and one of now */
        const char *as = form[k / 2];
        snprintf(yaml, sizeof yaml, "metadata: [time]\nbuffers: {x: {dtype: u8, shape: [5, 7]}}\nstages:\n  - {use: %s, "
                 "out: x}\n  - {use: write, path: 'a%%d.%s'}\n", k % 2 ? "generate, frames: 5" : "lua, script: then.lua", as);
        pipe_done(dir, yaml, "cpu", NULL, (gp_run_options){ 0 });
        snprintf(yaml, sizeof yaml, "metadata: [time]\nstages:\n  - {use: read, path: 'a%%d.%s', out: x}\n"
                 "  - {use: write, path: 'b%%d.%s', in: x}\n%s", as, as,
                 k % 2 ? "" : "  - {use: lua, script: same.lua, in: x, out: []}\n");
        pipe_done(dir, yaml, "cpu", NULL, (gp_run_options){ 0 });
        for (int i = 0; i < 5; i++) {
            char *bytes[2];
            for (int j = 0; j < 2; j++) {
                snprintf(yaml, sizeof yaml, "%c%d.%s", "ab"[j], i, as);
                bytes[j] = pipe_read(dir, yaml, &n[j]);
            }
            ck_assert_msg(n[0] == n[1] && !memcmp(bytes[0], bytes[1], n[0]), "%s", yaml);
            free(bytes[0]), free(bytes[1]);
        }
    }
}

/* ---- the sample rate --------------------------------------------------- */

/* A recording of 22050 Hz, then the stages, then the rates in the header of what they wrote: "": an error. */
static const struct { const char *stages, *name, *error; unsigned rate; } rates[] = {
    { "  - {use: scale, a: 0.5}\n  - {use: write, path: o.wav}\n", "o.wav", "", 22050 },
    { "  - {use: write, path: 'o%d.wav'}\n", "o1.wav", "", 22050 },
    { "  - {use: write, path: o.wav, sample_rate: 8000}\n", "o.wav", "", 8000 },
    { "  - {use: lua, script: rate.lua, params: {rate: 48000}}\n  - {use: write, path: o.wav}\n", "o.wav", "", 48000 },
    { "  - {use: lua, script: rate.lua, params: {rate: 0.5}}\n  - {use: write, path: o.wav}\n", "o.wav",
      "'sample_rate' is 0.5 Hz, and a recording has a whole number of them", 0 },
    { "  - {use: lua, script: rate.lua, params: {rate: 0}}\n  - {use: write, path: o.wav}\n", "o.wav",
      "'sample_rate' is 0 Hz, and a recording has a whole number of them, from 1 to 1e9", 0 },
    { "  - {use: lua, script: rate.lua, params: {rate: 0}}\n  - {use: write, path: 'o%d.wav'}\n", "o1.wav",
      "'sample_rate' is 0 Hz, and a recording has a whole number of them, from 1 to 1e9", 0 },
    { "  - {use: lua, script: rate.lua}\n  - {use: write, path: o.wav}\n", "o.wav", "have no 'sample_rate'", 0 },
    { "  - {use: lua, script: rate.lua}\n  - {use: write, path: 'o%d.wav'}\n", "o1.wav", "have no 'sample_rate'", 0 },
    { "  - {use: lua, script: rate.lua, params: {rate: 48000, step: 1}}\n  - {use: write, path: o.wav}\n", "o.wav",
      "/o.wav' cannot be written: the frame has a sample rate of 48001 Hz, those before it 48000", 0 },
    { "  - {use: lua, script: rate.lua, params: {drop: true}}\n  - {use: write, path: o.wav}\n", "o.wav",
      "there was no frame that says its sample rate", 0 },
};

TEST_EACH(sample_rate, rates)
{
    size_t n;
    const char *dir = pipe_dir();
    pipe_text(dir, "rate.lua", "local p\nfunction init(stage) p = stage.params end\nfunction process(frame, x, y)\n"
              "  y:copy(x)\n  frame.meta.sample_rate = p.rate and p.rate + (p.step or 0) * frame.index\n"
              "  if p.drop then return 'drop' end\nend\n");
    pipe_result r = pipe_done(dir, "buffers: {x: {dtype: f32, shape: [64]}}\nstages:\n"
                              "  - {use: generate, pattern: sine, frames: 3, out: x}\n"
                              "  - {use: write, path: i.wav, sample_rate: 22050}\n", "cpu", NULL, (gp_run_options){ 0 });
    char *yaml = format("metadata: [sample_rate]\nbuffers: {x: {dtype: f32, shape: [64]}}\nstages:\n"
                        "  - {use: read, path: i.wav, out: x}\n%s", rates[_i].stages);
    r = pipe_run(dir, yaml, "cpu", NULL, (gp_run_options){ 0 });
    if (!*rates[_i].error)
        pipe_no_errors(&r, rates[_i].stages);
    else
        ck_assert_msg(r.errs.n && strstr(r.errs.e[0].msg, rates[_i].error), "%s: %s", rates[_i].stages,
                      pipe_said(&r.errs));
    OWNED unsigned char *bytes = (unsigned char *)pipe_read(dir, rates[_i].name, &n);
    if (*rates[_i].error && !strstr(rates[_i].error, "those before it"))
        ck_assert(!bytes);
    else if (!*rates[_i].error)
        ck_assert_uint_eq(bytes[24] | bytes[25] << 8 | bytes[26] << 16, rates[_i].rate);
}

/* Of frames that come in one call the error names the one, however many were ready. */
TEST(rate_of_one)
{
    const char *dir = pipe_dir();
    for (int k = 0; k < 2; k++) {
        char *yaml = format("buffers: {x: {dtype: i16, shape: [10]}}\nstages:\n"
            "  - {use: generate, frames: 10, out: x}\n  - {use: write, path: %c.wav, sample_rate: %d}\n", "ab"[k],
            k ? 44100 : 8000);
        pipe_done(dir, yaml, "cpu", NULL, (gp_run_options){ 0 });
    }
    for (int k = 0; k < 10; k++) {
        pipe_result r = pipe_run(dir, "metadata: [sample_rate]\ndepth: 20\nbuffers: {x: {dtype: i16, shape: [10]}}\nstages:\n"
                                 "  - {use: read, path: '[ab].wav', out: x}\n  - {use: write, path: o.wav}\n", "cpu", NULL,
                                 (gp_run_options){ 0 });
        const char *said = pipe_said(&r.errs);
        ck_assert_msg(!strncmp(said, "frame 10: '", 11) && strstr(said, "/o.wav' cannot be written: the frame has a sample rate "
                                                                  "of 44100 Hz, those before it 8000"), "%s", said);
    }
}

/* ---- text that is no number ---------------------------------------------- */

static const struct { const char *text; size_t n; const char *error; double x; } texts[] = {
    { "9007199254740993", 16, "is '9007199254740993', which is not exact in an f64", 0 },
    { "-9223372036854775807", 20, "is not exact in an f64", 0 }, { "18446744073709551615", 20, "is not exact in an f64", 0 },
    { "-009223372036854775808", 22, NULL, -0x1p63 }, { "18446744073709551616", 20, NULL, 0x1p64 },
    { "9007199254740993.0", 18, NULL, 0x1p53 }, { "-0", 2, NULL, 0 }, { "9007199254740992", 16, NULL, 0x1p53 },
    { " 0.5\n", 5, NULL, 0.5 }, { "1\0002", 3, "has a NUL in its 'gain', which is not a number", 0 }, { "fast", 4, "is 'fast', which is not a number", 0 },
    { "0000000000000000000000000000000000000000000000000000000000000.5", 63, NULL, 0.5 },
    { "00000000000000000000000000000000000000000000000000000000000000.5", 64,
      "says its 'gain' in 64 characters, and a number has at most 63", 0 },
};

TEST_EACH(text, texts)
{
    static const char *const key[] = { "gain" };
    char why[GP_WHY] = "";
    gp_filemeta s = { .n = 1, .key = key };
    ck_assert_msg(gp_filemeta_parse(&s, 0, texts[_i].text, texts[_i].n, why) == !texts[_i].error, "%s: %s",
                  texts[_i].text, why);
    ck_assert_msg(texts[_i].error ? strstr(why, texts[_i].error) != NULL : s.value[0] == texts[_i].x, "%s: %s", texts[_i].text, why);
}

/* A description: the number that it says of `gain`; -1: none; an error of one that is torn. */
static const struct { const char *text, *error; double gain; } descriptions[] = {
    { "{\"gain\": 0.5, \"more\": {\"gain\": 7}}", NULL, 0.5 }, { " {\"other\": [1, 2]}", NULL, -1 },
    { "gain: 3", NULL, -1 }, { "{not JSON", NULL, -1 }, { "{\"other\": 1", NULL, -1 },
    { "{\"gain\": 1", "begins as JSON, names 'gain', and is none", 0 },
    { "{\"gain\": 1, ", "begins as JSON, names 'gain', and is none", 0 },
    { "{\"gain\" 1}", "begins as JSON, names 'gain', and is none", 0 },
    { "{\"other\": 1, \"gain\": [2}", "is '[2}', which is not a number", 0 },
    { "{\"gain\": 1, \"other", "begins as JSON, names 'gain', and is none", 0 },
};

TEST_EACH(description, descriptions)
{
    static const char *const key[] = { "gain" };
    const char *said = descriptions[_i].text, *error = descriptions[_i].error;
    char why[GP_WHY] = "";
    gp_filemeta s = { .n = 1, .key = key };
    ck_assert_msg(gp_filemeta_from_json(&s, said, why) == !error, "%s: %s", said, why);
    ck_assert_msg(error ? strstr(why, error) != NULL : (s.has ? s.value[0] : -1) == descriptions[_i].gain, "%s: %s", said, why);
}

/* ---- scripts that are wrong -------------------------------------------- */

static const struct { const char *script, *error; } wrong[] = {
    { "frame.meta.exposrue = 1", "the pipeline lists no 'exposrue' under 'metadata'" },
    { "local v = frame.meta.gian", "the pipeline lists no 'gian' under 'metadata'" },
    { "frame.meta['gain\\0b'] = 1", "the pipeline lists no 'gain\\0...' under 'metadata'" },
    { "local v = frame.meta['gain\\0']", "the pipeline lists no 'gain\\0...' under 'metadata'" },
    { "local v = frame.meta['time\\0']", "the pipeline lists no 'time\\0...' under 'metadata'" },
    { "frame.meta.exposure = '1'", "frame.meta.exposure is a number or nil, not a string" },
    { "frame.meta.exposure = {}", "frame.meta.exposure is a number or nil, not a table" },
    { "frame.meta.exposure = 0 / 0", "frame.meta.exposure cannot be NaN: it is a finite number, or nil" },
    { "frame.meta.exposure = -(0 / 0)", "frame.meta.exposure cannot be NaN: it is a finite number, or nil" },
    { "frame.meta.exposure = 1 / 0", "frame.meta.exposure cannot be inf: it is a finite number, or nil" },
    { "frame.meta.exposure = -1 / 0", "frame.meta.exposure cannot be -inf: it is a finite number, or nil" },
    { "frame.meta[1] = 1", "the numbers in frame.meta have names, and this is a number" },
    { "frame.meta = {exposure = 1}", "'meta' of this frame cannot be set: set a number of it" },
    { "frame.meta.time = 1", "the time of a frame is frame.time" },
    { "kept = kept or frame.meta; if frame.index == 1 then kept.exposure = 1 end", "the frame is used after its call" },
    { "kept = kept or frame.meta; if frame.index == 1 then y[1] = kept.exposure end", "the frame is used after its call" },
};

TEST_EACH(refused, wrong)
{
    const char *dir = pipe_dir();
    char *script = format("function process(frame, x, y)\n  y:copy(x)\n  %s\nend\n", wrong[_i].script);
    pipe_text(dir, "it.lua", script);
    pipe_result r = pipe_run(dir, "metadata: [exposure, gain]\nbuffers: {x: {dtype: u8, shape: [4]}}\nstages:\n"
                             "  - {use: generate, frames: 2, out: x}\n  - {use: lua, script: it.lua}\n  - {use: discard}\n",
                             "cpu", NULL, (gp_run_options){ 0 });
    ck_assert_msg(r.errs.n && strstr(r.errs.e[0].msg, wrong[_i].error) && r.errs.e[0].at.line == 3, "%s: line %d: %s",
                  wrong[_i].script, r.errs.n ? r.errs.e[0].at.line : 0, pipe_said(&r.errs));
}

TEST(refused_in_sink)
{
    const char *dir = pipe_dir();
    pipe_text(dir, "it.lua", "function process(frame, x)\n  frame.meta.gain = 1\nend\n");
    pipe_result r = pipe_run(dir, "metadata: [gain]\nbuffers: {x: {dtype: u8, shape: [4]}}\nstages:\n"
                             "  - {use: generate, frames: 2, out: x}\n  - {use: lua, script: it.lua, out: []}\n", "cpu", NULL,
                             (gp_run_options){ 0 });
    ck_assert(r.errs.n && strstr(r.errs.e[0].msg, "nothing comes behind this stage"));
}

CASES_AND(meta)
