# Makes song.flac: two seconds of what a bird might sing, and a hum beneath it. Needs NumPy and soundfile.
import numpy as np
import soundfile

RATE = 16000
t = np.arange(2 * RATE) / RATE
rng = np.random.default_rng(1897)


def tone(frequency, start, length):
    """Where its phase is the integral of the frequency; rises and falls like a half wave."""
    inside = (t >= start) & (t < start + length)
    loud = np.where(inside, np.sin(np.pi * (t - start) / length), 0) ** 2
    phase = 2 * np.pi * np.cumsum(frequency) / RATE
    return loud * (np.sin(phase) + 0.2 * np.sin(2 * phase))


song = 0.02 * np.sin(2 * np.pi * 120 * t) + 0.003 * rng.standard_normal(len(t))
for k in range(4):                                        # four calls that fall
    start = 0.1 + 0.22 * k
    song += 0.3 * tone(3800 - 1400 * np.clip((t - start) / 0.16, 0, 1) - 150 * k, start, 0.16)
song += 0.35 * tone(3000 + 400 * np.sin(2 * np.pi * 28 * t), 1.0, 0.5)     # a trill
song += 0.3 * tone(1200 * 3 ** np.clip((t - 1.55) / 0.4, 0, 1), 1.55, 0.4)  # a whistle that rises
soundfile.write("song.flac", np.round(32767 * song).astype(np.int16), RATE)
