"""photos_pool.py - photos to pictures of their edges, as one writes it in Python: a pool of workers, each of which decodes a
photo (cv2), finds its edges on the GPU (PyTorch) or by cv2, and encodes the result.

    photos_pool.py make PHOTO FOLDER COUNT png|jpg      photos of 1024 x 768: parts of the one, turned and mirrored
    photos_pool.py run FOLDER OUT png|jpg COUNT

`run` tries pools of 9, 16 and 32 threads and of 16 processes, each with PyTorch, if there is a GPU for it, and without, and
then gives all photos to the fastest. It prints `pool PHOTOS-A-SECOND NAME`, without the time in which workers start, `bytes
OF-ALL-FILES`, and `codec MS`, which one thread needs to decode a photo and to encode its edges. Exit 3 without cv2.
"""
import glob, multiprocessing, os, shutil, sys, threading, time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

try:
    import cv2
    import numpy as np
except ImportError:
    sys.exit(3)
try:
    import torch
    has_gpu = torch.cuda.is_available()
except ImportError:
    has_gpu = False

WIDE, HIGH, SIGMA, RADIUS = 1024, 768, 1.4, 5
TRY = 320
own = threading.local()                        # what a worker keeps


def settings(ext):
    return [cv2.IMWRITE_PNG_COMPRESSION, 3] if ext == "png" else [cv2.IMWRITE_JPEG_QUALITY, 90]


def make(photo, folder, count, ext):
    image = cv2.imread(photo)
    h, w = image.shape[:2]
    around = cv2.copyMakeBorder(image, HIGH // 2, HIGH // 2, WIDE // 2, WIDE // 2, cv2.BORDER_REFLECT)
    rng = np.random.default_rng(1)
    places = [(int(rng.integers(h + 1)), int(rng.integers(w + 1)), k % 4) for k in range(count)]

    def one(k):
        y, x, turn = places[k]
        part = around[y:y + HIGH, x:x + WIDE]
        part = part[::-1] if turn & 1 else part
        part = part[:, ::-1] if turn & 2 else part
        cv2.imwrite(os.path.join(folder, "%05d.%s" % (k, ext)), np.ascontiguousarray(part), settings(ext))

    os.makedirs(folder)
    with ThreadPoolExecutor() as pool:
        list(pool.map(one, range(count)))


class OnGpu:
    def __init__(self):
        self.stream = torch.cuda.Stream()
        t = torch.arange(-RADIUS, RADIUS + 1, dtype=torch.float32)
        g = torch.exp(-t * t / (2 * SIGMA * SIGMA))
        self.across = (g / g.sum()).cuda()[None, None, None]
        self.down = self.across.transpose(2, 3).contiguous()
        self.slope = torch.tensor([[-1., 0, 1], [-2, 0, 2], [-1, 0, 1]]).cuda()[None, None]
        self.bgr = torch.tensor([0.114, 0.587, 0.299]).cuda()
        self.photo = torch.empty((HIGH, WIDE, 3), dtype=torch.uint8).pin_memory()
        self.edges = torch.empty((HIGH, WIDE), dtype=torch.uint8).pin_memory()

    def __call__(self, image):
        f = torch.nn.functional
        self.photo.copy_(torch.from_numpy(image))
        with torch.cuda.stream(self.stream), torch.no_grad():
            x = (self.photo.cuda(non_blocking=True).float() @ self.bgr)[None, None]
            x = f.conv2d(f.pad(x, (RADIUS, RADIUS, 0, 0), "reflect"), self.across)
            x = f.conv2d(f.pad(x, (0, 0, RADIUS, RADIUS), "reflect"), self.down)
            x = f.pad(x, (1, 1, 1, 1), "reflect")
            x = torch.hypot(f.conv2d(x, self.slope), f.conv2d(x, self.slope.transpose(2, 3)))
            self.edges.copy_(x.clamp(0, 255).to(torch.uint8)[0, 0], non_blocking=True)
            self.stream.synchronize()
        return self.edges.numpy()


def by_cv2(image):
    x = cv2.cvtColor(image, cv2.COLOR_BGR2GRAY).astype(np.float32)
    x = cv2.GaussianBlur(x, (2 * RADIUS + 1, 2 * RADIUS + 1), SIGMA, borderType=cv2.BORDER_REFLECT)
    x = cv2.magnitude(cv2.Sobel(x, cv2.CV_32F, 1, 0), cv2.Sobel(x, cv2.CV_32F, 0, 1))
    return cv2.min(x, 255).astype(np.uint8)


def work(job):
    source, to, gpu = job
    if not hasattr(own, "edges"):
        cv2.setNumThreads(1)
        own.edges = OnGpu() if gpu else by_cv2
    cv2.imwrite(to, own.edges(cv2.imread(source)), settings(to[-3:]))


def pool_of(kind, n):
    return ThreadPoolExecutor(n) if kind == "threads" else \
        ProcessPoolExecutor(n, mp_context=multiprocessing.get_context("spawn"))


def measure(photos, out, gpu, kind, n):
    """Photos a second."""
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out)
    jobs = [(p, os.path.join(out, os.path.basename(p)), gpu) for p in photos]
    with pool_of(kind, n) as pool:
        list(pool.map(work, jobs[:4 * n]))
        start = time.perf_counter()
        list(pool.map(work, jobs))
        return len(jobs) / (time.perf_counter() - start)


def codec_ms(photos, ext):
    cv2.setNumThreads(1)
    files = [np.fromfile(p, np.uint8) for p in photos]
    edges = [by_cv2(cv2.imdecode(f, 1)) for f in files]
    start = time.perf_counter()
    for f, e in zip(files, edges):
        cv2.imdecode(f, 1)
        cv2.imencode("." + ext, e, settings(ext))
    return 1e3 * (time.perf_counter() - start) / len(files)


def run(folder, out, ext, count):
    photos = sorted(glob.glob(os.path.join(folder, "*." + ext)))[:count]
    ways = [(gpu, kind, n) for gpu in ((True, False) if has_gpu else (False,))
            for kind, n in (("threads", 9), ("threads", 16), ("threads", 32), ("processes", 16))]
    best = max(ways, key=lambda way: measure(photos[:TRY], out, *way))
    rate = measure(photos, out, *best)
    print("pool %.2f %d %s, cv2%s" % (rate, best[2], best[1], " and PyTorch" if best[0] else ""))
    print("bytes %d" % sum(os.path.getsize(os.path.join(out, os.path.basename(p))) for p in photos))
    print("codec %.3f" % codec_ms(photos[:24], ext))


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5])
    else:
        run(sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]))
