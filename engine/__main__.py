"""Run a prompt from a terminal, or check a model folder: the window's headless twin."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
from typing import TYPE_CHECKING

from engine import models, weights
from engine.arguments import Parser, add_run_options, request
from engine.errors import EngineError
from engine.events import RunFailed, Sampled, Tokenized
from engine.report import Ratings, limits_lines, ratings, report, summary
from engine.request import Request
from engine.tokenizer import END_OF_TEXT, load
from engine.trace import Trace

if TYPE_CHECKING:
    from engine.generate import Engine

DONE, FAILED, REFUSED, INTERRUPTED = 0, 1, 2, 130


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line asks; returns the exit code."""
    _let_any_text_through()
    options = _parser().parse_args(arguments)
    try:
        code = _answer(options)
        if sys.stdout is not None:
            sys.stdout.flush()  # here, where a full disk can still be told
        return code
    except EngineError as error:
        print(error, file=sys.stderr)
        return REFUSED
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the reader has enough, as `head` has: nobody is left to be told
        _write_no_more()
        return FAILED
    except OSError as error:
        _write_no_more()
        print(EngineError("output", reason=error.strerror or error), file=sys.stderr)
        return FAILED


def _answer(options: argparse.Namespace) -> int:
    if options.check is not None:
        return _check(options.check, as_json=options.json)
    return _run(request(options, options.prompt), options)


def _parser() -> Parser:
    parser = Parser(prog="python -m engine", description="Run GPT-2 on a prompt, as text.")
    parser.add_argument(
        "prompt", nargs="?", help='the text to go on from; "-" reads it from a pipe'
    )
    parser.add_argument("--check", metavar="FOLDER", help="accept or refuse a model folder")
    parser.add_argument("--json", action="store_true", help="print one JSON object, nothing else")
    parser.add_argument(
        "--limits",
        action="store_true",
        help="say how near it came to what this machine can do; measures that once, in two seconds",
    )
    add_run_options(parser)
    return parser


def _run(request: Request, options: argparse.Namespace) -> int:
    from engine.generate import Engine  # brings torch: a refused request is answered without it

    engine = Engine.load(options.model, options.device, options.dtype)
    if not options.json:
        for note in engine.notes:
            print(note, file=sys.stderr)
    interrupted = threading.Event()
    signal.signal(signal.SIGINT, lambda *_: _interrupt(interrupted))
    trace, stream = Trace(), load().stream()
    for event in engine.generate(request, interrupted.is_set):
        trace.append(event)
        if options.json:
            continue
        if isinstance(event, Tokenized):
            print(request.prompt, end="", flush=True)
        elif isinstance(event, Sampled) and event.token.id != END_OF_TEXT:
            print(stream.push(event.token.id), end="", flush=True)
    if not options.json:
        print(stream.finish(), flush=True)
        print(summary(trace), file=sys.stderr)
    rated = _rate(engine, trace) if options.limits else None
    if options.json:
        print(json.dumps(report(trace, rated)))
    else:
        for line in limits_lines(rated or {}):
            print(line, file=sys.stderr)
    if isinstance(trace.ended, RunFailed):
        print(trace.ended.message, file=sys.stderr)
        return FAILED
    return INTERRUPTED if interrupted.is_set() else DONE


def _rate(engine: Engine, trace: Trace) -> Ratings:
    from engine import probe  # as above

    try:
        return ratings(trace, lambda forward: probe.rate(engine.runner, forward))
    except EngineError as error:  # the run is good without
        print(error, file=sys.stderr)
        return {"prefill": None, "decode": None}


def _interrupt(interrupted: threading.Event) -> None:
    """Stop after the step in progress; a second Ctrl-C does not wait for it."""
    if interrupted.is_set():
        raise KeyboardInterrupt
    interrupted.set()


def _check(folder: str, *, as_json: bool) -> int:
    try:
        checkpoint = weights.read(models.find(folder))
    except EngineError as error:
        said = {"ok": False, "kind": error.kind, "message": str(error)}
        said |= {"notes": [], "model": None, "sha256": None}
        print(json.dumps(said) if as_json else f"refused: {error}")
        return REFUSED
    model = checkpoint.model
    message = f"{model.title}, {model.dimensions.n_params:,} parameters"
    message += ", verified" if model.verified else ", not one we know: unverified"
    said = {"ok": True, "kind": "ok", "message": message}
    said |= {"notes": list(checkpoint.notes), "model": model.name, "sha256": checkpoint.sha256}
    print(json.dumps(said) if as_json else "\n".join([f"accepted: {message}", *checkpoint.notes]))
    return DONE


def _write_no_more() -> None:
    """Let what still waits in standard output go nowhere, or Python's own end would fail on it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _let_any_text_through() -> None:
    """A terminal that cannot show a character gets a stand-in, not a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


if __name__ == "__main__":
    sys.exit(main())
