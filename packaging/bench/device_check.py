"""Verify and measure the engine on a CUDA card, in one run of less than eight minutes.

    python packaging/bench/device_check.py [--budget SECONDS] [--out FOLDER] [--device cuda|cpu]

Sections stand in the order of their value. One that fails is reported and the next goes on; one for
which the budget is too short is left out with a word. What is found is printed at the end and, if
--out names a folder, kept in its result.json after every section, so that nothing is lost if the
machine is taken away. The weights are random ones of GPT-2's shape; nothing is downloaded. Hugging
Face's transformers, Triton and pytest are used where they are installed.

Each measurement stands beside what was predicted of it: bounds that must hold, and theory. Theory
is a prediction written down before, for an H200, and the formulas of engine.floors for any other
card. What is off by more than 1.5 times is marked: it must be explained before anything is changed.

--device cpu is a dry run: it tries this script with a tiny model and says nothing about any card.
The status is 0 if no section failed and all bounds hold, 1 if not, 2 if there is no card.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:1] = [str(ROOT), str(ROOT / "packaging")]  # instead of this folder

import torch  # noqa: E402 - the path comes first

from bench import device_right as right  # noqa: E402
from bench import device_speed as speed  # noqa: E402
from bench import random_model  # noqa: E402
from bench.device_report import Found, Report  # noqa: E402
from bench.device_setting import TINY, Setting  # noqa: E402

BUDGET_S = 480
GRACE_S = 20  # after the budget; then a section that hangs ends the program, without a table
PACKAGES = ("torch", "triton", "transformers", "numpy")
NO_CARD = (
    "There is no CUDA card that torch {torch} can use here (torch.cuda.is_available() says so); "
    "--device cpu makes a dry run, which says nothing about a card."
)
DRY = "DRY RUN on a CPU with a tiny model: it tries the script and says nothing about any card"


@dataclass(frozen=True, slots=True)
class Section:
    """One part of the check, and how many seconds should be left for it."""

    name: str
    run: Callable[[Setting], Found]
    needs_s: float


SECTIONS = (
    Section("float32", right.float32, 20),
    Section("our kernels", right.our_kernels, 40),
    Section("runs", right.runs, 30),
    Section("16 bits", right.sixteen_bits, 30),
    Section("limits", speed.limits, 10),
    Section("decode", speed.decode, 30),
    Section("no waiting", right.no_waiting, 15),
    Section("Hugging Face", right.hugging_face, 30),
    Section("its decode", speed.hugging_face, 30),
    Section("tests", right.tests, right.TESTS_S),
    Section("first token", speed.first_token, 20),
    Section("recording", speed.recording, 20),
    Section("draw, packet", speed.draw_and_packet, 10),
    Section("memory", right.memory, 15),
    Section("batches", speed.batches, 30),
    Section("1.5B", speed.large, 45),
    Section("compiled", speed.compiled, 180),
)


def main() -> int:
    """Run the check; the status of the program."""
    options = _options()
    if options.device == "cuda" and not torch.cuda.is_available():
        print(NO_CARD.format(torch=torch.__version__), file=sys.stderr)
        return 2
    start = time.monotonic()
    faulthandler.dump_traceback_later(options.budget + GRACE_S, exit=True)
    setting = _setting(options.device)
    report = Report(_about(setting))
    for section in SECTIONS:
        left = options.budget - (time.monotonic() - start)
        if left < section.needs_s:
            report.notes.append(f"{section.name} left out: {left:.0f} s were left")
            continue
        print(f"{section.name} ...", file=sys.stderr, flush=True)
        report.take(section.name, section.run(setting))
        gc.collect()  # what a section made is gone before the next one begins
        if not setting.dry:
            torch.cuda.empty_cache()
        if options.out is not None:
            report.write(options.out)
    faulthandler.cancel_dump_traceback_later()
    print("\n".join(f"{name}: {value}" for name, value in report.about.items()))
    print("\n".join(report.lines()))
    if setting.dry:
        print(DRY)
    return 0 if report.good else 1


def _setting(device: str) -> Setting:
    if device == "cpu":
        return Setting("cpu", random_model.checkpoint(TINY), ("float32", "bfloat16"), n_steps=8)
    dtypes = ["float16", "float32"]
    if torch.cuda.get_device_capability()[0] >= 8:  # older cards only imitate bfloat16
        dtypes.append("bfloat16")
    return Setting("cuda", random_model.checkpoint(), tuple(dtypes), n_steps=48)


def _about(setting: Setting) -> dict[str, str | bool]:
    about: dict[str, str | bool] = {"device": setting.card, "dry_run": setting.dry}
    if not setting.dry:
        major, minor = torch.cuda.get_device_capability()
        about["capability"] = f"{major}.{minor}"
    about["python"] = platform.python_version()
    for package in PACKAGES:
        about[package] = _version(package)
    about["model"] = f"random weights, {setting.size.n_params / 1e6:.0f} million parameters"
    return about


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--budget", type=float, default=BUDGET_S, metavar="SECONDS")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="keep result.json there")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="cpu: a dry run")
    options = parser.parse_args()
    if options.budget <= 0:
        parser.error("the budget is a number of seconds above 0")
    return options


if __name__ == "__main__":
    sys.exit(main())
