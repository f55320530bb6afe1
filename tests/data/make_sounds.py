#!/usr/bin/env python3
"""Makes tests/data/sound: small recordings that soundfile and SciPy write, and the rows that each is read as.

Integers are at the full scale of their type, as libsndfile has them. NAME.npy is what a file holds where no type is
declared. Needs numpy, scipy, soundfile and ffmpeg; the files are kept in git."""
import os, struct, subprocess

import numpy as np, scipy.io.wavfile, soundfile as sf

TO = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sound")
RATE, ROWS = 8000, 300


def rows(channels, n=ROWS):
    """Something like a sound, of which no two channels are alike."""
    t = np.arange(n)[:, None] * (1 + np.arange(channels)) / 17
    return 0.6 * np.sin(t) + np.random.default_rng(3).normal(0, 0.05, (n, channels))


def store(name, data, expected, subtype=None, **how):
    """One column is no axis. In blocks: libsndfile puts all that it encodes on its stack."""
    with sf.SoundFile(f"{TO}/{name}", "w", RATE, data.shape[1], subtype, **how) as f:
        for i in range(0, len(data), 256):
            f.write(data[i:i + 256])
    expect(name, expected)


def expect(name, expected):
    np.save(f"{TO}/{name.rsplit('.', 1)[0]}.npy", expected[:, 0] if expected.shape[1] == 1 else expected)


def by_ffmpeg(name, data, rate, *how, piped=False):
    """What ffmpeg writes of i16 or f32, and the rows that it reads of it; in a pipe it cannot go back to the header."""
    raw = ["-f", "s16le" if data.dtype == "i2" else "f32le", "-ac", str(data.shape[1])]
    made = subprocess.run(["ffmpeg", "-v", "error", "-y", *raw, "-ar", str(rate), "-i", "-", *how,
                           "-" if piped else f"{TO}/{name}"], input=data.tobytes(), stdout=subprocess.PIPE, check=True)
    if piped:
        with open(f"{TO}/{name}", "wb") as f:
            f.write(made.stdout)
    back = subprocess.run(["ffmpeg", "-v", "error", "-i", f"{TO}/{name}", *raw, "-"], capture_output=True, check=True)
    expect(name, np.frombuffer(back.stdout, data.dtype).reshape(-1, data.shape[1]))


def by_others():
    """MPEG audio and Opus, whose first rows are left out; FLAC that does not say its length; two tags in front."""
    by_ffmpeg("layer3.mp3", rows(2, 3000).astype("f4"), 22050, "-q:a", "3")
    by_ffmpeg("coded.opus", rows(1, 4000).astype("f4"), 48000, "-c:a", "libopus")
    by_ffmpeg("piped.flac", np.round(rows(2) * 32767).astype("i2"), RATE, "-f", "flac", piped=True)
    tag = b"ID3\4\0\x10" + bytes((0, 0, 1, 2)) + bytes(130) + b"3DI\4\0\x10" + bytes((0, 0, 1, 2))
    for name in "five.flac", "i16.wav":
        with open(f"{TO}/{name}", "rb") as f, open(f"{TO}/tagged-{name}", "wb") as g:
            g.write(tag + tag + f.read())


def chunk(name, data, size=None):
    return name + struct.pack("<I", len(data) if size is None else size) + data


def wav(name, *chunks):
    with open(f"{TO}/{name}", "wb") as f:
        f.write(chunk(b"RIFF", b"WAVE" + b"".join(chunks)))


def main():
    os.makedirs(TO, exist_ok=True)
    stereo, mono, five = rows(2), rows(1), rows(5)
    i16 = np.round(stereo * 32767).astype("i2")
    i24 = np.round(stereo * 8388607).astype("i4") * 256
    i32 = np.round(stereo * 2147483647).astype("i4")
    scipy.io.wavfile.write(f"{TO}/i16.wav", RATE, i16)
    expect("i16.wav", i16)
    scipy.io.wavfile.write(f"{TO}/f32.wav", RATE, stereo.astype("f4") * 3)          # beyond 1
    expect("f32.wav", stereo.astype("f4") * 3)
    scipy.io.wavfile.write(f"{TO}/f64.wav", RATE, stereo)
    expect("f64.wav", stereo)
    scipy.io.wavfile.write(f"{TO}/i32.wav", RATE, i32)
    expect("i32.wav", i32)
    u8 = np.round(mono * 127 + 128).astype("u1")
    scipy.io.wavfile.write(f"{TO}/u8.wav", RATE, u8[:, 0])
    expect("u8.wav", (u8.astype("i2") - 128) * 256)
    store("i24.wav", i24, i24, "PCM_24")
    store("mono.wav", np.round(mono * 32767).astype("i2"), np.round(mono * 32767).astype("i2"), "PCM_16")
    store("five.flac", np.round(five * 32767).astype("i2"), np.round(five * 32767).astype("i2"), "PCM_16")
    store("i24.flac", i24, i24, "PCM_24")
    os.replace(f"{TO}/i24.flac", f"{TO}/deep.flac")
    expect("deep.flac", i24)
    expect("i24.wav", i24)
    store("big.aiff", i16, i16, "PCM_16")
    store("float.aiff", stereo.astype("f4"), stereo.astype("f4"), "FLOAT")
    store("wide.rf64", i16, i16, "PCM_16", format="RF64")
    long = rows(2, 5000).astype("f4")
    store("vorbis.ogg", long, long, "VORBIS", format="OGG")
    expect("vorbis.ogg", sf.read(f"{TO}/vorbis.ogg", dtype="f4")[0])
    by_others()
    # A chunk of odd length before the data, one behind, and a size that nobody knew when it was written.
    form = chunk(b"fmt ", struct.pack("<HHIIHH", 1, 2, RATE, 4 * RATE, 4, 16))
    wav("chunks.wav", form, chunk(b"note", b"odd") + b"\0", chunk(b"data", i16.tobytes()), chunk(b"LIST", b"INFO"))
    expect("chunks.wav", i16)
    wav("endless.wav", form, chunk(b"data", i16.tobytes(), 0xffffffff))
    expect("endless.wav", i16)
    wav("empty.wav", form, chunk(b"data", b""))


main()
