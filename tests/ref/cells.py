# What examples/cells finds, with SciPy: written apart from it, to check it. Writes cells.csv.
#     python3 tests/ref/cells.py examples/cells/cells/*.png
import os, sys

import numpy as np
from PIL import Image
from scipy import ndimage

here = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(here, "cells.csv"), "w") as out:
    print("picture,cell,area,x0,y0,x1,y1,x,y", file=out)
    for path in sorted(sys.argv[1:]):
        smooth = ndimage.gaussian_filter(np.asarray(Image.open(path), np.float64), 1.5, radius=5)
        labels, n = ndimage.label(smooth > 60, np.ones((3, 3)))
        print(path, n, "nearest to the level:", np.abs(smooth - 60).min(), file=sys.stderr)
        area = ndimage.sum_labels(labels > 0, labels, range(1, n + 1))
        center = ndimage.center_of_mass(labels > 0, labels, range(1, n + 1))
        for k, (y, x) in enumerate(ndimage.find_objects(labels)):
            print("%s,%d,%d,%d,%d,%d,%d,%.2f,%.2f" % (
                os.path.splitext(os.path.basename(path))[0], k + 1, area[k], x.start, y.start, x.stop, y.stop,
                center[k][1], center[k][0]), file=out)
