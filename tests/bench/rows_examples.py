"""rows_examples.py - the pipelines of examples/ as they are, with no setting, each beside the fastest of an expert's
ways in Python (examples_peers.py).
"""
from tools import Failure, Row

try:
    import examples
    ALL = examples.ALL
except ImportError:                       # without NumPy and OpenCV there is nothing to compare
    ALL = []


def row(e):
    def measure(b):
        b.has_gpu()
        b.ever("surroundings", examples.surroundings)
        m = examples.Measured(b, e)
        try:
            ways, wrong = m.experts()
            if not ways:
                raise Failure("no way of the expert's works: " + "; ".join(wrong))
            best = max(ways, key=ways.get)
            return 1e6 / m.gpipe(), 1e6 / ways[best], best
        finally:
            m.close()
    return Row("example-" + e.name, "%s: an expert's Python" % e.what, "rate", 1.0, measure)


ROWS = [row(e) for e in ALL]
