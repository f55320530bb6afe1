# The spectrogram of examples/spectrogram, by SciPy: of every 16th window. Writes spectrogram.npy.
#     python3 tests/ref/spectrogram.py examples/spectrogram/song.flac
import os, sys

import numpy as np, soundfile
from scipy import signal

song, rate = soundfile.read(sys.argv[1])
_, _, power = signal.spectrogram(np.concatenate([np.zeros(412), song]), rate, "hann", 512, 412, detrend=False)
levels = 10 * np.log10(np.maximum(power, 1e-12)).T
assert levels.shape == (320, 257)
np.save(os.path.join(os.path.dirname(os.path.abspath(__file__)), "spectrogram.npy"), levels[::16].astype(np.float32))
