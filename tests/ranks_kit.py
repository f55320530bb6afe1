"""ranks_kit.py - what the tests of several ranks share (ranks.py, ranks_report.py, collectives.py): how ranks are
started, with each MPI that is installed, and what is counted. The test's first argument is gpipe; it runs in a folder
of its own."""
import glob, os, shutil, signal, subprocess, sys
from kit import check, gpipe, put, tmp, total

name = os.path.splitext(os.path.basename(sys.argv[0]))[0]
shim = os.path.join(os.path.dirname(os.path.realpath(gpipe)), "gpipe-mpi.so")
tests = os.path.dirname(os.path.abspath(__file__))
source = os.path.join(tests, "..", "engine")
os.chdir(tmp.name)
os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_rmaps_base_oversubscribe="1",
                  OMPI_MCA_hwloc_base_binding_policy="none")
# Open MPI keeps its session in one folder of all of a user's mpiruns, and the first that ends takes it away under another
# that begins: the tests of ranks run side by side, so each has a folder.
os.environ["TMPDIR"] = os.path.join(tmp.name, ".tmp")
os.mkdir(os.environ["TMPDIR"])

# How a script begins that looks at its parameters, and whether a file is there.
PARAMS_AND_THERE = """stateless = true
local p
function init(s) p = s.params end
local function there(name)
  local f = io.open(name)
  if f then f:close() end
  return f
end
"""


def finish(with_what):
    total(name, f" ({with_what})")


def has(folder):
    """All files in it, by their paths there."""
    all_of = {}
    for f in sorted(glob.glob(folder + "/**", recursive=True) + glob.glob(folder + "/.*")):
        if os.path.isfile(f):
            with open(f, "rb") as x:
                all_of[os.path.relpath(f, folder)] = x.read()
    return all_of


def ran(command, timeout=120, env=None):
    """Whoever it started is ended, too, where it takes too long."""
    p = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         env=env, start_new_session=True)
    try:
        out, err = p.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, signal.SIGKILL)
        out, err = p.communicate()
        err += "\nit did not end"
    if p.returncode < 0:
        err += f"\nended by signal {-p.returncode}"
    return subprocess.CompletedProcess(command, p.returncode, out, err)


def ranks_here():
    """The processes that are ranks of gpipe in this folder."""
    ranks = {}
    for f in glob.glob("/proc/[0-9]*/environ"):
        try:
            with open(f, "rb") as x:
                env = x.read().split(b"\0")
            if os.path.realpath(os.path.dirname(f) + "/exe") == os.path.realpath(gpipe) \
                    and os.path.realpath(os.path.dirname(f) + "/cwd") == os.path.realpath(tmp.name):
                rank = [e for e in env if e.startswith((b"OMPI_COMM_WORLD_RANK=", b"PMI_RANK="))]
                ranks[int(rank[0].split(b"=")[1])] = int(f.split("/")[2])
        except (OSError, IndexError):
            pass
    return ranks


def left_alone(p, ranks, timeout=90):
    """What all said at the end; what is still there then is ended."""
    try:
        said = p.communicate(timeout=timeout)[1]
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, signal.SIGKILL)
        said = "it did not end"
    for pid in ranks.values():
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    return said


class Mpi:
    def __init__(self, name, mpirun, so):
        self.name, self.mpirun, self.so = name, mpirun, so

    def start(self, n, *args, options=(), command=gpipe):
        os.environ["GPIPE_MPI"] = self.so
        return [self.mpirun, *options, "-n", str(n), command, *args]

    def begin(self, n, *args, err=subprocess.PIPE, **more):
        """In a session of its own, for left_alone()."""
        return subprocess.Popen(self.start(n, *args, **more), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=err, text=True, start_new_session=True)

    def run(self, n, *args):
        return ran(self.start(n, *args))


def mpis(kind=Mpi):
    """Each that is installed, with a shim of its own. Without any the test ends."""
    found = []
    for which in ("openmpi", "mpich"):
        mpirun, mpicc = shutil.which("mpirun." + which), shutil.which("mpicc." + which)
        so = f"{tmp.name}/{which}.so"
        if mpirun and mpicc and ran([mpicc, "-std=c11", "-I", source, "-fPIC", "-shared", "-o", so,
                                     source + "/mpi/shim.c"]).returncode == 0:
            found.append(kind(which, mpirun, so))
    if not found and shutil.which("mpirun") and os.path.exists(shim):
        found.append(kind("mpi", "mpirun", shim))
    if not found:
        print(f"{name}: SKIPPED: there is no MPI with mpicc and mpirun; install libopenmpi-dev and openmpi-bin")
        sys.exit(0)
    return found
