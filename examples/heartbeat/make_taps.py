# Makes bandpass.npy: a linear-phase FIR, 5 to 15 Hz at 360 Hz, 73 taps
# (so that it delays by 36 samples). Needs NumPy and SciPy.
import numpy as np
from scipy.signal import firwin

np.save("bandpass.npy", firwin(73, [5, 15], pass_zero=False, fs=360).astype(np.float32))
