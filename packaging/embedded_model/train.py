"""Train a small GPT-2 on a folder of texts; stop when you like and go on where it stopped.

    python packaging/embedded_model/train.py --corpus FOLDER --out RUN [--minutes N] [--tokens N]
    python packaging/embedded_model/train.py --out RUN --resume [--minutes N]

--tokens is how much the whole run reads, and what its schedule spans; without it the settings say.
--minutes ends this sitting only, as Ctrl-C does: the run is saved, and --resume goes on, here or on
another machine, to the same numbers as if it had never stopped. With --from, a run begins with the
weights of another run instead of random ones.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "packaging")]

from embedded_model import checkpoint, corpus, progress, settings, streams  # noqa: E402 - the path comes first
from embedded_model.refusal import Refusal  # noqa: E402
from embedded_model.training import Training  # noqa: E402
from engine.meter import n_cores  # noqa: E402

LOG = "log.jsonl"
SAVED_EVERY = 300.0  # seconds


def main(arguments: list[str] | None = None) -> int:
    """0: the run or the minutes are over; 2: refused; 130: Ctrl-C. What was trained is saved."""
    options = _options(arguments)
    try:
        training = _resumed(options) if options.resume else _begun(options)
        return _train(training, options.out, options.minutes)
    except Refusal as refusal:
        print(refusal, file=sys.stderr)
        return 2


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", type=Path, metavar="FOLDER", help="the texts; see README.md")
    parser.add_argument("--out", type=Path, metavar="RUN", required=True, help="folder of the run")
    parser.add_argument("--minutes", type=float, help="end this sitting after so long; it is saved")
    parser.add_argument("--tokens", type=int, help="length of the whole run")
    parser.add_argument("--resume", action="store_true", help="go on with the run in --out")
    parser.add_argument(
        "--from", type=Path, metavar="RUN", dest="origin", help="begin with its weights"
    )
    parser.add_argument("--settings", type=Path, metavar="FILE", default=settings.SHIPPED)
    parser.add_argument("--threads", type=int, help="all cores, or as many as the run began with")
    options = parser.parse_args(arguments)
    if options.minutes is not None and not options.minutes > 0:
        parser.error("--minutes must be more than 0")
    if options.threads is not None and options.threads < 1:
        parser.error("--threads must be at least 1")
    return options


def _begun(options: argparse.Namespace) -> Training:
    out: Path = options.out
    if (out / checkpoint.NAME).exists():
        raise Refusal(f"{out} holds a run: go on with it by --resume, or name another folder.")
    chosen = settings.read(options.settings)
    if options.tokens is not None:
        run = replace(chosen.run, tokens=options.tokens)
        chosen = settings.settled(replace(chosen, run=run).plain(), source="--tokens")
    origin = checkpoint.read(options.origin) if options.origin else None
    read = _streams(options, chosen)
    return Training.begun(chosen, read, n_threads=options.threads or n_cores(), origin=origin)


def _resumed(options: argparse.Namespace) -> Training:
    saved = checkpoint.read(options.out)
    if options.tokens not in (None, saved.settings.run.tokens) or options.origin:
        raise Refusal(
            "A run that goes on keeps its length and its weights: for another length, begin a new "
            "run in another folder, and name this one with --from."
        )
    read = _streams(options, saved.settings)
    return Training.resumed(saved, read, n_threads=options.threads or saved.n_threads)


def _streams(options: argparse.Namespace, chosen: settings.Settings) -> streams.Streams:
    """Those that lie with the run, else made of the texts and laid there."""
    kept: Path = options.out / streams.NAME
    if kept.exists():
        return streams.load(kept)
    if options.corpus is None:
        raise Refusal(f"There is no {streams.NAME} in {options.out}: name the texts with --corpus.")
    documents = corpus.read_corpus(options.corpus)
    print(f"{len(documents):,} documents; tokenizing takes about a minute ...", file=sys.stderr)
    made = streams.build(documents, chosen.corpus, n_rows=chosen.model.n_rows)
    for name, stream in made.training.items():
        rest = (stream.rows == len(made.vocabulary)).mean()
        print(f"{name:8}{len(stream.rows):11,} tokens, {rest:.2%} without a row", file=sys.stderr)
    try:
        options.out.mkdir(parents=True, exist_ok=True)
        streams.save(made, kept)
    except OSError as error:
        raise Refusal(f"{options.out} could not be written: {error.strerror}.") from error
    return made


def _train(training: Training, out: Path, minutes: float | None) -> int:
    """Step until the run, the minutes or the user's patience is over; save."""
    run = training.settings.run
    said = progress.Progress(n_steps=training.settings.n_steps, batch_tokens=run.batch_tokens)
    print(f"{training.arithmetic}, {training.n_threads} threads", file=sys.stderr)
    print(progress.HEADER, flush=True)
    with _interrupts() as heard:
        begin = saved = time.monotonic()
        while not (training.finished or heard):
            start = time.monotonic()
            left = None if minutes is None else begin + 60 * minutes - start
            if left is not None and left <= 0:
                break
            loss = training.advance()
            said.stepped(training.step, loss, time.monotonic() - start, left)
            if line := training.measure():
                said.measured(line)
            if line or time.monotonic() - saved > SAVED_EVERY:
                _save(training, out)
                saved = time.monotonic()
        _save(training, out)
    where = f"step {training.step:,} of {training.settings.n_steps:,}"
    print(f"Saved at {where} in {out}. {_next(training)}", file=sys.stderr)
    return 130 if heard else 0


@contextmanager
def _interrupts() -> Iterator[list[int]]:
    """A list that Ctrl-C adds to; a second one ends the program at once."""
    heard: list[int] = []

    def note(number: int, _: object) -> None:
        heard.append(number)
        signal.signal(number, signal.SIG_DFL)
        print("\nSaving after this step; once more ends it unsaved.", file=sys.stderr)

    before = {name: signal.signal(name, note) for name in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield heard
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)


def _next(training: Training) -> str:
    if training.finished:
        return "The run is over: export.py makes a model folder of it."
    return "Go on with --resume."


def _save(training: Training, out: Path) -> None:
    try:
        checkpoint.write(training.checkpoint(), out)
        text = "".join(json.dumps(line) + "\n" for line in training.log)
        unfinished = out / f"{LOG}.part"
        unfinished.write_text(text, encoding="utf-8")
        os.replace(unfinished, out / LOG)
    except OSError as error:
        raise Refusal(f"The run could not be saved in {out}: {error.strerror}.") from error


if __name__ == "__main__":
    sys.exit(main())
