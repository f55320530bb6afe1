# Pan and Tompkins' detector (IEEE Trans. Biomed. Eng. BME-32(3), 1985) over the whole recording at once, with SciPy:
# written apart from examples/heartbeat/beats.lua, to check it. Writes beats.npy (times in s, f64).
import sys, numpy as np
from scipy.signal import find_peaks, firwin, lfilter

fs = 360
x = np.load(sys.argv[1]).astype(np.float64)
band = lfilter(firwin(73, [5, 15], pass_zero=False, fs=fs), 1, x)
slope = lfilter(np.array([2, 1, 0, -1, -2]) / 8, 1, band)
width = round(0.150 * fs)
energy = lfilter(np.ones(width) / width, 1, slope ** 2)

learn = 2 * fs
signal, noise = energy[:learn].max() / 3, energy[:learn].mean() / 2
peaks, _ = find_peaks(energy, distance=round(0.200 * fs))
t_wave = round(0.360 * fs)


def steepest(p):
    return np.abs(slope[max(p - width + 1, 0):p + 1]).max()


def r_wave(p):
    lo = max(p - width + 1, 0)
    return lo + int(np.abs(band[lo:p + 1]).argmax())


beats, marks, missed = [], [], []


def accept(p, weight):
    global signal, missed
    signal = weight * energy[p] + (1 - weight) * signal
    marks.append(p)
    beats.append((r_wave(p) - 36) / fs)
    missed = []


for p in peaks:
    if p < learn:
        continue
    if len(marks) > 1 and missed:
        mean = np.diff(marks[-9:]).mean()
        if p - marks[-1] > 1.66 * mean:
            best = max(missed, key=lambda q: energy[q])
            if energy[best] > 0.5 * (noise + 0.25 * (signal - noise)):
                accept(best, 0.25)
    threshold = noise + 0.25 * (signal - noise)
    since = p - marks[-1] if marks else np.inf
    if energy[p] > threshold and not (since < t_wave and steepest(p) < 0.5 * steepest(marks[-1])):
        accept(p, 0.125)
    else:
        noise = 0.125 * energy[p] + 0.875 * noise
        if since >= t_wave:
            missed.append(p)

np.save("beats.npy", np.array(beats))
print(len(beats), "beats, mean interval", np.diff(beats).mean(), "s")
