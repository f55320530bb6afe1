"""wheel.py VERSION CC LIBRARY COMMAND FOLDER - makes the wheel of gpipe in FOLDER: the package, libgpipe.so with the
libraries that it has beside itself, and the command. The module of declarations is made of gpipe.h, so that no layout
of a struct stands twice; it needs no compiler where it is installed. The tag says which glibc is needed: that of the
system that the wheel is made on is mostly the least."""
import base64, hashlib, os, re, subprocess, sys, tempfile, zipfile
import cffi

# What gpipe.h does not have: streams of memory for texts of errors, and the two structs of DLPack (dlpack.h, 1.1).
BESIDE = """
typedef bool gp_pause(void *);
FILE *open_memstream(char **, size_t *); int fclose(FILE *); void free(void *);
typedef struct { int32_t type, id; } DLDevice;
typedef struct { uint8_t code, bits; uint16_t lanes; } DLDataType;
typedef struct {
    void *data; DLDevice device; int32_t ndim; DLDataType dtype; int64_t *shape, *strides; uint64_t byte_offset;
} DLTensor;
typedef struct DLManagedTensor { DLTensor tensor; void *context; void (*deleter)(struct DLManagedTensor *); }
    DLManagedTensor;
typedef struct DLManagedTensorVersioned {
    struct { uint32_t major, minor; } version; void *context; void (*deleter)(struct DLManagedTensorVersioned *);
    uint64_t flags; DLTensor tensor;
} DLManagedTensorVersioned;
"""


def declarations(cc):
    """What gpipe.h declares, as cffi takes it."""
    text = subprocess.run([*cc.split(), "-E", "-Iengine/include", "-D__attribute__(x)=", "-include", "time.h",
                           "engine/include/gpipe/gpipe.h"], stdout=subprocess.PIPE, text=True, check=True).stdout
    kept, lines = False, []
    for line in text.splitlines():
        m = re.match(r'# \d+ "([^"]*)"', line)
        if m:
            kept = "/gpipe/" in m[1] or m[1].endswith("/struct_tm.h")
        elif kept and not line.startswith("#"):
            lines.append(line)
    text = "\n".join(lines)
    text = re.sub(r"static inline [^{]*\{.*?\n\}", "", text, flags=re.S)
    text = re.sub(r"__extension__ typedef __int128", "typedef long double", text)      # as large, and aligned alike
    return re.sub(r"\n *GP_ACCEPT_REAL = [^,]*,", "", text)


def glibc(files):
    """The newest version of glibc whose symbols they need."""
    found = set()
    for f in files:
        symbols = subprocess.run(["objdump", "-T", f], stdout=subprocess.PIPE, text=True, check=True).stdout
        found |= {tuple(map(int, v.split("."))) for v in re.findall(r"\*UND\*.*\(GLIBC_(\d+\.\d+)", symbols)}
    return max(found)


def needed(file):
    """The libraries that are no part of glibc: [(name, path)]. They go into the wheel."""
    wants = re.findall(r"NEEDED +(\S+)", subprocess.run(["objdump", "-p", file], stdout=subprocess.PIPE, text=True,
                                                        check=True).stdout)
    lines = subprocess.run(["ldd", file], stdout=subprocess.PIPE, text=True, check=True).stdout
    paths = dict(re.findall(r"(\S+) => (\S+)", lines))
    own = re.compile(r"(libc|libm|libdl|librt|libpthread|ld-linux.*)\.so")
    return [(w, paths[w]) for w in wants if not own.match(w)]


def main(version, cc, library, command, folder):
    here = os.path.dirname(os.path.abspath(__file__))
    machine = os.uname().machine
    files = {}                                         # name in the wheel: (bytes, mode)
    for name in sorted(os.listdir(os.path.join(here, "gpipe"))):
        if name.endswith((".py", ".pyi", ".typed")):
            with open(os.path.join(here, "gpipe", name), "rb") as f:
                files["gpipe/" + name] = (f.read(), 0o644)
    with tempfile.TemporaryDirectory() as tmp:
        ffi = cffi.FFI()
        ffi.set_source("gpipe._declared", None)
        ffi.cdef(declarations(cc) + BESIDE)
        ffi.emit_python_code(os.path.join(tmp, "_declared.py"))
        binaries = {"libgpipe.so": library, "gpipe": command, **dict(needed(library))}
        for name, path in binaries.items():
            if name != "libgpipe.so" and (more := [w for w, _ in needed(path) if w not in binaries]):
                sys.exit(f"{path} needs {', '.join(more)}, which the wheel does not have")
        for name, path in {"_declared.py": None, **binaries}.items():
            made = os.path.join(tmp, name)
            if path:
                subprocess.run(["strip", "--strip-unneeded", "-o", made, path], check=True)
            with open(made, "rb") as f:
                where = "gpipe/" if not path else f"gpipe-{version}.data/scripts/" if name == "gpipe" else "gpipe/lib/"
                files[where + name] = (f.read(), 0o755 if path else 0o644)
        tag = "py3-none-manylinux_%d_%d_%s" % (*glibc(os.path.join(tmp, n) for n in binaries), machine)
    info = f"gpipe-{version}.dist-info/"
    add = lambda name, text: files.__setitem__(info + name, (text.encode(), 0o644))
    add("METADATA", f"Metadata-Version: 2.1\nName: gpipe\nVersion: {version}\nSummary: declarative GPU pipelines\n"
        "License: MIT\nRequires-Python: >=3.9\nRequires-Dist: cffi>=1.15\n"
        "Requires-Dist: numpy>=1.23\n")
    add("WHEEL", f"Wheel-Version: 1.0\nGenerator: gpipe\nRoot-Is-Purelib: false\nTag: {tag}\n")
    with open("LICENSE") as f:
        add("licenses/LICENSE", f.read())
    for package in ("libyaml-dev", "liblua5.4-dev", "libluajit-5.1-dev", "libdeflate-dev", "libjpeg62-turbo-dev",
                    "libjpeg-turbo8-dev", "zlib1g-dev", "libjansson-dev"):
        if os.path.exists(path := f"/usr/share/doc/{package}/copyright"):
            with open(path, encoding="utf-8") as f:
                add(f"licenses/{package}", f.read())
    digest = lambda b: base64.urlsafe_b64encode(hashlib.sha256(b).digest()).rstrip(b"=").decode()
    add("RECORD", "".join(f"{n},sha256={digest(b)},{len(b)}\n" for n, (b, _) in files.items()) + info + "RECORD,,\n")
    os.makedirs(folder, exist_ok=True)
    for old in os.listdir(folder):
        if old.endswith(".whl"):
            os.remove(os.path.join(folder, old))
    wheel = os.path.join(folder, f"gpipe-{version}-{tag}.whl")
    with zipfile.ZipFile(wheel + ".new", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as z:
        for name, (data, mode) in files.items():
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr, entry.compress_type = (0o100000 | mode) << 16, zipfile.ZIP_DEFLATED
            z.writestr(entry, data)
    os.rename(wheel + ".new", wheel)
    size = os.path.getsize(wheel) / 1e6
    print(f"{wheel}: {size:.1f} MB")
    if size > 40:
        sys.exit("the wheel is larger than 40 MB")


if __name__ == "__main__":
    main(*sys.argv[1:])
