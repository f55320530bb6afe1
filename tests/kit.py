"""kit.py - what programs of this folder that run gpipe share: its path, a folder, a count of checks, processes that end
with the test."""
import atexit, os, random, signal, socket, subprocess, sys, tempfile, time

gpipe = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 and os.path.isfile(sys.argv[1]) else os.environ["GPIPE"])
tmp = tempfile.TemporaryDirectory()
os.chmod(tmp.name, 0o700)
env = dict(os.environ, XDG_RUNTIME_DIR=tmp.name, TERM="xterm")
quick = os.environ.get("GPIPE_TESTS") != "all"
children, passed, failed = [], 0, []


def too_long(*_):
    raise TimeoutError("the test has not ended in half an hour")


# Whatever waits without an end of its own fails where it waits.
signal.signal(signal.SIGALRM, too_long)
signal.alarm(1800)


@atexit.register
def end_children():
    for p in children:
        if p.poll() is None:
            p.kill()
            p.wait()


def check(name, ok, what=""):
    global passed
    if ok:
        passed += 1
    else:
        failed.append(name)
        print(f"FAILED: {name}: {what!s:.2000}", flush=True)


def total(name, more=""):
    print(f"{name}: {passed} passed, {len(failed)} failed{more}")
    sys.exit(bool(failed))


def path(name):
    return os.path.join(tmp.name, name)


def put(name, text):
    """With the folders above it."""
    os.makedirs(os.path.dirname(path(name)), exist_ok=True)
    with open(path(name), "wb") as f:
        f.write(text if isinstance(text, bytes) else text.encode())
    return path(name)


def bytes_of(name):
    with open(name, "rb") as f:
        return f.read()


def until(true, seconds=60):
    end = time.time() + seconds
    while not true() and time.time() < end:
        time.sleep(0.02)
    return true()


def free_port(host="127.0.0.1", kind=socket.SOCK_STREAM):
    """One of those that the system never gives away by itself, so that it stays free until gpipe takes it."""
    while True:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, kind) as s:
            try:
                s.bind((host, random.randrange(10000, 32768)))
                return s.getsockname()[1]
            except OSError:
                pass


def spawn(*args, **more):
    """gpipe, which ends with this test whatever happens."""
    children.append(subprocess.Popen([gpipe, *args], **{"env": env, "text": True, **more}))
    return children[-1]


def ran(*command):
    """Whether it came to a good end."""
    p = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if p.returncode:
        print(p.stderr, command, file=sys.stderr)
    return p.returncode == 0


def runs(text):
    """Whether a pipeline of this text, in the current folder, does."""
    with open("p.yaml", "w") as f:
        f.write(text)
    return ran(gpipe, "run", "-q", "--device", "cpu", "p.yaml")
