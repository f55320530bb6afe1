"""jpeg_torch.py - JPEG files to pictures on the GPU, then gray and their mean, as one writes it with torchvision: batches,
of which each is decoded by one call. The files are in memory before the clock starts.

    jpeg_torch.py BATCH FRAMES FILE...

Prints `torchvision US`, microseconds per picture, and `mean X`, of the first picture. Exit 3 where there is no
torchvision, or no GPU for it.
"""
import sys, time

try:
    import torch
    from torchvision.io import decode_jpeg
except ImportError:
    sys.exit(3)
if not torch.cuda.is_available():
    sys.exit(3)


def run(files, weights, batch, frames):
    """Seconds, until the last mean is there; the first."""
    first = None
    start = time.perf_counter()
    for i in range(0, frames, batch):
        pictures = decode_jpeg([files[k % len(files)] for k in range(i, i + batch)], device="cuda")
        means = torch.stack([(p.float() * weights).sum(0).mean() for p in pictures]).cpu()
        first = first if first is not None else float(means[0])
    torch.cuda.synchronize()
    return time.perf_counter() - start, first


def main():
    batch, frames = int(sys.argv[1]), int(sys.argv[2])
    files = [torch.frombuffer(bytearray(open(name, "rb").read()), dtype=torch.uint8) for name in sys.argv[3:]]
    weights = torch.tensor([0.299, 0.587, 0.114], device="cuda").view(3, 1, 1)
    run(files, weights, batch, 4 * batch)
    took, first = run(files, weights, batch, frames)
    print("torchvision %.3f" % (1e6 * took / frames))
    print("mean %.3f" % first)


if __name__ == "__main__":
    with torch.no_grad():
        main()
