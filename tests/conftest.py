"""What every test stands on: an offscreen screen of known size, one thread, no network."""

import os
from pathlib import Path

_HERE = Path(__file__).parent
os.environ.setdefault(
    "QT_QPA_PLATFORM", f"offscreen:configfile={_HERE.parent / 'resources' / 'screens.json'}"
)
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
