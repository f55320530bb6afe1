# Makes cells/: pictures of bright cells on a dark, noisy ground, and one without cells. Needs NumPy and Pillow.
import numpy as np
from PIL import Image

rng = np.random.default_rng(1665)          # Hooke's Micrographia
H, W = 192, 256
y, x = np.mgrid[:H, :W]

for name, cells in (("well-1", 30), ("well-2", 18), ("well-3", 0), ("well-4", 45)):
    light = np.full((H, W), 20.0)
    for _ in range(cells):
        cx, cy, a, b, turn = rng.uniform(0, W), rng.uniform(0, H), *rng.uniform(4, 10, 2), rng.uniform(0, np.pi)
        u, v = (x - cx) * np.cos(turn) + (y - cy) * np.sin(turn), (y - cy) * np.cos(turn) - (x - cx) * np.sin(turn)
        edge = np.hypot(u / a, v / b)
        light = np.maximum(light, 20 + rng.uniform(70, 150) / (1 + np.exp(8 * (edge - 1))))
    seen = rng.poisson(light) + rng.normal(0, 6, light.shape)
    Image.fromarray(np.clip(seen, 0, 255).astype(np.uint8)).save(f"cells/{name}.png", optimize=True)
