"""Time what the window costs the model: tokens a second with all panels open over the bare engine.

    python packaging/bench/window.py [--tokens 200] [--rounds 3] [--model embedded|random|FOLDER]
                                     [--json FILE]

Both sides run the same model at full speed in a process of their own, interleaved; random has the
shape of GPT-2 124M. The rate is
(N - 1) / (last token - first token) on the wall clock, so that whatever the window takes from the
model counts. The window's heartbeat is a 10 ms timer: how much later than that it comes is how
long a click would wait. Without a display the window is painted off screen.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:1] = [str(ROOT), str(ROOT / "packaging")]  # instead of this folder

from bench import random_model  # noqa: E402 - the path comes first
from engine.models import EMBEDDED  # noqa: E402
from engine.request import Request  # noqa: E402
from engine.trace import Trace  # noqa: E402

if TYPE_CHECKING:
    from app.main_window import MainWindow

PROMPT = "Once upon a time, there was a little girl named Lily."
BEAT_MS = 10
RANDOM = "random"


def wish(n_tokens: int) -> Request:
    """The default sampling with a seed at which the model goes on for 227 tokens."""
    return Request(PROMPT, max_tokens=n_tokens, seed=13)


def rate(trace: Trace) -> dict[str, Any]:
    ends = [sampled.span[1] for sampled in trace.samples]
    return {"tokens": len(ends), "tok_s": (len(ends) - 1) * 1e9 / (ends[-1] - ends[0])}


def bare(n_tokens: int, model: str) -> dict[str, Any]:
    """The engine as `python -m engine` drives it."""
    from engine.generate import Engine

    return rate(Trace(Engine.load(model).generate(wish(n_tokens))))


def windowed(n_tokens: int, model: str) -> dict[str, Any]:
    """The real window at full speed, all panels visible."""
    if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        screens = ROOT / "resources" / "screens.json"
        os.environ["QT_QPA_PLATFORM"] = f"offscreen:configfile={screens}"
    from PySide6.QtCore import Qt, QTimer
    from PySide6.QtWidgets import QApplication

    from app.main_window import MainWindow
    from app.settings import Settings
    from app.theme import Themes
    from app.worker import Wanted

    application = QApplication([])
    themes = Themes()
    themes.choose("dark")
    themes.apply()
    window = MainWindow(Settings(kept=False), themes)
    window.resize(1440, 900)
    window.desk.arrange()
    window.set_pace("full")
    beats: list[float] = []
    timer = QTimer(timerType=Qt.TimerType.PreciseTimer, interval=BEAT_MS)
    timer.timeout.connect(lambda: beats.append(time.perf_counter()))
    window.loader.loaded.connect(lambda _: QTimer.singleShot(500, lambda: _begin(window, timer)))
    window.settled.connect(lambda _: QTimer.singleShot(0, window.close))
    wanted = Wanted(model, "auto", "auto")
    window.painted.connect(lambda: QTimer.singleShot(0, lambda: window.start(wanted)))
    _ask(window, n_tokens)
    window.show()
    application.exec()
    run = window.store.session.open_run
    assert run is not None
    late = sorted(1e3 * (b - a) - BEAT_MS for a, b in pairwise(beats))
    return {
        **rate(run.trace),
        "frames": window.frames.n,
        "tick_late_ms_p95": late[int(0.95 * len(late))],
        "tick_late_ms_max": late[-1],
    }


def _begin(window: MainWindow, timer: Any) -> None:  # noqa: ANN401 - Qt is imported late
    timer.start()
    window.generate()


def _ask(window: MainWindow, n_tokens: int) -> None:
    request = wish(n_tokens)
    fields = {"prompt": request.prompt, "max_tokens": n_tokens, "sampling": request.sampling}
    window.store.edit({**fields, "seed": request.seed})


def measure(*, n_tokens: int, n_rounds: int, model: str) -> dict[str, Any]:
    """Medians over interleaved rounds, each side in a fresh process."""
    rows: dict[str, list[dict[str, Any]]] = {"bare": [], "windowed": []}
    for _ in range(n_rounds):
        for side, found in rows.items():
            command = [sys.executable, __file__, "--side", side, "--tokens", str(n_tokens)]
            command += ["--model", model]
            said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            found.append(json.loads(said.splitlines()[-1]))
    pairs = zip(rows["windowed"], rows["bare"], strict=True)
    return {
        "tokens": median(row["tokens"] for row in rows["bare"]),
        "tok_s": {
            side: round(median(r["tok_s"] for r in found), 1) for side, found in rows.items()
        },
        "ratio": round(median(w["tok_s"] / b["tok_s"] for w, b in pairs), 3),
        "frames": median(row["frames"] for row in rows["windowed"]),
        "tick_late_ms_p95": round(median(r["tick_late_ms_p95"] for r in rows["windowed"]), 1),
        "tick_late_ms_max": round(max(r["tick_late_ms_max"] for r in rows["windowed"]), 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--model", default=EMBEDDED, metavar="embedded|random|FOLDER")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--side", choices=("bare", "windowed"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        run = bare if options.side == "bare" else windowed
        print(json.dumps(run(options.tokens, options.model)))
        return
    with TemporaryDirectory(prefix="decodescope-bench-") as place:
        model = options.model
        if model == RANDOM:
            model = place
            random_model.write(Path(place))
        result = measure(n_tokens=options.tokens, n_rounds=options.rounds, model=model)
    for name, value in result.items():
        print(f"{name:17} {value}")
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
