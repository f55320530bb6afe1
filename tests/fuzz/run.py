#!/usr/bin/env python3
"""run.py [--seconds S] [--seed N] [HARNESS]... - the harnesses under libFuzzer; `make fuzz`.

Each runs for S seconds, as many at a time as there are cores, from its corpus (tests/fuzz/corpus/NAME and the folders in ALSO). An
input that is wrong is left in build/fuzz/found/NAME, with a line that repeats it, and printed if
it is short (`echo TEXT | base64 -d >FILE` makes it again elsewhere): mend the defect, then move
the input to tests/fuzz/corpus/NAME, which `make check` replays. At the end the stored corpus must
reach what tests/fuzz/COVERAGE says.
"""
import argparse, base64, concurrent.futures, glob, json, os, random, re, subprocess, sys

os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
BUILD, COVERED, CORPUS = "build/fuzz", "build/fuzz-coverage", "tests/fuzz/corpus"
RUN, REPLAY = f"{BUILD}/tests/fuzz/run", f"{COVERED}/tests/fuzz/replay"
PRINTED = 3000                          # bytes of an input that are printed at most
WRONG = re.compile("ERROR: |runtime error: |does not hold: ")
ALSO = {"yaml": ["pipelines", "tests/bad", "tests/golden"], "png": ["tests/data/png"],
        "jpeg": ["tests/data/jpeg"], "pnm": ["tests/data/pnm"], "npz": ["tests/data/npz"],
        "tiff": ["tests/data/tiff"]}
LONGEST = {"yaml": 3000, "edit": 1000, "expr": 300, "set": 500, "npy": 400, "png": 1000, "lua": 500,
           "top": 3000, "report": 4000, "cu": 2000, "jpeg": 2000, "pnm": 400, "text": 400,
           "npz": 3000, "onnx": 1500, "tiff": 4000, "y4m": 400, "zarr": 1500}
WORDS = {
    "yaml": "pipeline device depth streams batch launch sync on_error stall_timeout vars buffers "
            "stages use name in out window frames partial carry state init workers zero on_hole dtype shape "
            "like const path auto cpu cuda cuda:1 graph stream persistent spin yield block stop drop reset splice null true u8 "
            "i8 u16 i16 u32 i32 u64 i64 f16 f32 f64 c64 ${ ${env:HOME} :- $$ ceil( floor( min( "
            "max( .shape[0] .size <<: &a *a # nolint: ---\\x0a \\x0a\\x20\\x20-\\x20 give take",
    "expr": "ceil( floor( min( max( in.shape[ in.size width gain k_2 least most tiny KiB MiB GiB "
            "TiB KB MB GB kHz MHz GHz ns us ms min h e308 9223372036854775807 ${dir} ${ ${env: :- $$ "
            "clamp( select( atan2( hypot( pow( rsqrt( log10( isnan( round( complex( conj( re( im( arg( frame.index frame.time a.shape[ b.size i0 i1 a b "
            "&& || == != <= >= << >> ?:",
    "npy": "\\x93NUMPY\\x01\\x00 'descr' 'fortran_order' 'shape' True False '<f4' '|u1' '<c8' '>i2' (6, 4) "
           "9223372036854775807",
    "top": "seconds stages buffers sources name frames bytes frames_per_s bytes_per_s bound_by bound_rank bound_meets pipeline depth "
           "held fill from to ended left_s true 1e308 1e18 nan -1 {} [] &a *a",
    "report": "stages name busy frame_p50_us segments buffers held engines verdict text measured "
              "false read gray clean blur sobel write take copy\\x20in compute copy\\x20out \\\\u0000 \\\\ud800 &a *a",
    "cu": "__global__ __shared__ extern include #include \\\\\\x0a /* */ // \\x22 ' //==\\x20 log a.h "
          "k.cu k( __launch_bounds__( gpipe-check count error:\\x20 fatal\\x20error:\\x20 from\\x20/k.cu: /k.cu: "
          "deleted\\x20function __shfl template<",
    "jpeg": "\\xff\\xd8 \\xff\\xd9 \\xff\\xda \\xff\\xc0 \\xff\\xc1 \\xff\\xc2 \\xff\\xc4 \\xff\\xc9 \\xff\\xca \\xff\\xcc \\xff\\xd0 "
            "\\xff\\xdb \\xff\\xdd \\xff\\xdc \\xff\\xe0 \\xff\\xe1 \\xff\\xee Exif\\x00\\x00 II*\\x00 MM\\x00* "
            "\\x12\\x01\\x03\\x00 \\x01\\x12\\x00\\x03 Adobe JFIF",
    "npz": "PK\\x03\\x04 PK\\x01\\x02 PK\\x05\\x06 PK\\x06\\x06 PK\\x06\\x07 \\x01\\x00\\x10\\x00 \\xff\\xff\\xff\\xff u.npy .npy \\x93NUMPY\\x01\\x00",
    "y4m": "YUV4MPEG2\\x20 \\x20W4 \\x20H2 \\x20F30:1 \\x20Ip \\x20It \\x20A1:1 \\x20C420jpeg \\x20C420p10 \\x20C422 \\x20C444 "
           "\\x20Cmono \\x20Cmono12 \\x20C420mpeg2 \\x20C420paldv \\x20C444p16 \\x20XCOLORRANGE=FULL FRAME\\x0a",
    "tiff": "II*\\x00 MM\\x00* II+\\x00\\x08\\x00 \\x00\\x01\\x03\\x00 \\x01\\x01\\x04\\x00 \\x12\\x01\\x03\\x00 \\x11\\x01\\x04\\x00 "
            "\\x16\\x01\\x03\\x00 \\x17\\x01\\x04\\x00 \\x1c\\x01\\x03\\x00 \\x42\\x01\\x03\\x00 \\x53\\x01\\x03\\x00 ImageJ= \\x0aimages=3",
    "text": "nan inf NaN -Infinity 1e308 5e-324 -9223372036854775808 18446744073709551615 0.1 1,2 3;4 5\\x096 7\\x208 [ ] #\\x20 "
            "\\x0a \\x0d\\x0a \\xef\\xbb\\xbf a,b \\x220\\x22",
    "zarr": "zarr_format node_type array group shape data_type chunk_grid regular configuration chunk_shape chunk_key_encoding default "
            "codecs bytes endian little big transpose order zstd gzip blosc crc32c numcodecs.lz4 zlib sharding_indexed index_codecs "
            "index_location start end fill_value NaN 0x7e00 attributes ome multiscales datasets path must_understand false chunks dtype "
            "<f4 compressor id filters dimension_separator \\x00",
    "pnm": "P5 P6 P2 P4 Pf PF # 255 65535 4095 -1.0 1.0 2.5e-1 \\x0a 7\\x205\\x20",
    "png": "IHDR PLTE tRNS IDAT IEND gAMA sBIT bKGD iCCP tEXt zTXt sRGB eXIf",
}
WORDS["edit"] = WORDS["yaml"]
WORDS["onnx"] = ("in\\x20x\\x201\\x201\\x20N\\x204 out\\x20y\\x201\\x201\\x20 \\x20N=3 \\x20? \\x20! \\x20-1 \\x20@9 \\x20~ "
                 "\\x0a%%\\x0a \\x0a fail\\x20 version\\x201. newest\\x20 cuda provider:\\x20 model:\\x20m.onnx use:\\x20onnx "
                 "create_env create_session dims symbols element value_kind tensor_info count_in count_dims fix_symbol "
                 "free_name providers append_cuda " + WORDS["yaml"].replace("\\x0a", ""))
WORDS["set"] = ("depth= streams= vars. buffers. stages. stages.louder.a= stages.script.params. "
                "buffers.ecg. stages.kernel.args. vars.must= =[ ={ =\\x22 stages.copy.path= "
                + WORDS["yaml"].replace("\\x0a", ""))


def words_of_kinds():
    """Names of kinds, ports, options and their choices, as `gpipe stages` has them."""
    kinds = json.loads(subprocess.run([f"{BUILD}/gpipe", "stages", "--json"], check=True,
                                      capture_output=True, text=True).stdout)
    for kind in kinds:
        yield f"use: {kind['name']}"
        for port in kind["in"] + kind["out"]:
            yield port["name"]
        for option in kind["options"]:
            yield option["name"] + ": "
            yield from (option["choices"] or "").split("|")


def dictionary(name):
    """The option that names the dictionary of a harness, if it has one."""
    path = f"{BUILD}/{name}.dict"
    words = {w.replace('"', "\\x22") for w in WORDS.get(name, "").split()}
    if name in ("yaml", "set", "onnx"):
        words |= set(words_of_kinds())
    if not words:
        return []
    with open(path, "w") as f:
        f.writelines(f'"{w}"\n' for w in sorted(words - {""}))
    return [f"-dict={path}"]


def said(lines):
    """What was wrong: from the line that names it to the sanitizer's summary; without either, the end."""
    first = next((i for i, line in enumerate(lines) if WRONG.search(line)), max(0, len(lines) - 40))
    last = next((i for i in range(first, len(lines)) if lines[i].startswith("SUMMARY: ")), first + 40)
    return lines[first:last + 1]


def tell(name, path):
    """How an input that is wrong runs again, here and on another machine."""
    lines = [f"repeat: {RUN} --{name} {path}"]
    if os.path.getsize(path) <= PRINTED:
        with open(path, "rb") as f:
            lines.append(f"input: {base64.b64encode(f.read()).decode()}")
    return lines


def fuzz(name, seconds, seed):
    """One harness. A Lua state keeps memory from one input to the next, which is no leak but is
    looked into at length: not there."""
    found, grown = f"{BUILD}/found/{name}", f"{BUILD}/corpus/{name}"
    os.makedirs(found, exist_ok=True)
    os.makedirs(grown, exist_ok=True)
    before = set(os.listdir(found))
    p = subprocess.run(
        [RUN, f"--{name}", f"-max_total_time={seconds}", f"-seed={seed}", f"-max_len={LONGEST.get(name, 1000)}",
         f"-detect_leaks={int(name != 'lua')}", "-timeout=10", "-print_final_stats=1", "-verbosity=0",
         f"-artifact_prefix={found}/"] + dictionary(name) + [grown, f"{CORPUS}/{name}"] + ALSO.get(name, []),
        capture_output=True, text=True, errors="replace")
    stats = dict(line[6:].split(": ", 1) for line in p.stderr.splitlines() if line.startswith("stat::"))
    lines = [f"{name:8} seed {seed}, {stats.get('number_of_executed_units', '?').strip()} inputs, "
             f"{'ok' if not p.returncode else 'FAILED'}"]
    if p.returncode:
        lines += said(p.stderr.splitlines())
    for new in sorted(set(os.listdir(found)) - before):
        lines += tell(name, f"{found}/{new}")
    print("\n".join(lines), flush=True)
    return not p.returncode


def stated():
    """Of each harness: the least percentage of lines, and the files they are in."""
    for line in open("tests/fuzz/COVERAGE"):
        words = line.split("#")[0].split()
        if words:
            for w in words[2:]:
                if not glob.glob(w):
                    sys.exit(f"tests/fuzz/COVERAGE: no file is '{w}'")
            yield words[0], float(words[1]), [f for w in words[2:] for f in sorted(glob.glob(w))]


def covers(name, percent, files):
    raw, merged = f"{COVERED}/{name}.profraw", f"{COVERED}/{name}.profdata"
    subprocess.run([REPLAY, CORPUS, name], check=True, stdout=subprocess.DEVNULL,
                   env=dict(os.environ, LLVM_PROFILE_FILE=raw))
    subprocess.run(["llvm-profdata", "merge", "-o", merged, raw], check=True)
    out = subprocess.run(["llvm-cov", "export", "-summary-only", f"-instr-profile={merged}", REPLAY]
                         + files, check=True, capture_output=True, text=True).stdout
    lines = json.loads(out)["data"][0]["totals"]["lines"]
    ok = lines["percent"] >= percent
    print(f"{name:8} reaches {lines['percent']:.1f} % of {lines['count']} lines, of {percent:g} % at least"
          f"{'' if ok else ': FAILED'}", flush=True)
    return ok


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--seconds", type=int, default=20)
    args.add_argument("--seed", type=int, default=0, help="0: another one each time")
    args.add_argument("harness", nargs="*")
    args = args.parse_args()
    known = {name: (percent, files) for name, percent, files in stated()}
    for name in args.harness:
        if name not in known:
            sys.exit(f"no harness '{name}'; there are {', '.join(known)}")
    names = args.harness or list(known)
    seed = args.seed or random.randrange(1, 1 << 31)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda name: fuzz(name, args.seconds, seed), names))
    results += [covers(name, *known[name]) for name in names]
    print(f"fuzz: {sum(results)} passed, {len(results) - sum(results)} failed")
    sys.exit(not all(results))


if __name__ == "__main__":
    main()
