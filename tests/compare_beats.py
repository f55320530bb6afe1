# Are at least 99 % of the beats of each list within 50 ms of one of the other?
# Plain Python, so that the check needs nothing installed.
import json
import struct
import sys


def near(a, b):
    return sum(min(abs(t - u) for u in b) <= 0.05 for t in a) / len(a)


ours = [json.loads(line)["time"] for line in open(sys.argv[1])]
raw = open(sys.argv[2], "rb").read()
raw = raw[10 + struct.unpack("<H", raw[8:10])[0]:]
theirs = struct.unpack("<%dd" % (len(raw) // 8), raw)
print(len(ours), len(theirs), near(ours, theirs), near(theirs, ours))
sys.exit(0 if near(ours, theirs) >= 0.99 and near(theirs, ours) >= 0.99 else 1)
