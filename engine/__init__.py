"""Prompt to tokens to prefill to decode to events to trace; no window anywhere."""

import os

__version__ = "0.1.0"

# numpy's own threads fight the model's for the cores; it reads this once, when it is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
