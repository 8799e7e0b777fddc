"""The window from a command line: arguments, application, crash notes, show, then the engine."""

from __future__ import annotations

import argparse
import os
import sys

from app import display
from engine import resources
from engine.arguments import Parser, add_run_options, request
from engine.errors import EngineError


def main(arguments: list[str] | None = None) -> int:
    """Open the window, or run off screen; returns the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    options = _parser().parse_args(arguments)
    options.said = {word.split("=")[0] for word in arguments if word.startswith("--")}
    try:
        wish = request(options, options.prompt)
        if not (options.headless or "QT_QPA_PLATFORM" in os.environ or display.answers(os.environ)):
            raise EngineError("no_display")  # Qt itself would abort
    except EngineError as error:
        print(error, file=sys.stderr)
        return 2
    if options.headless:
        screens = resources.path("screens.json").resolve()
        os.environ["QT_QPA_PLATFORM"] = f"offscreen:configfile={screens}"
        options.out = options.out or "out"
    from app.start import start  # Qt, once the platform is chosen

    return start(options, wish)


def _parser() -> Parser:
    parser = Parser(prog="decodescope", description="Watch GPT-2 turn a prompt into text.")
    add = parser.add_argument
    add("--prompt", help='the text to go on from; "-" reads it from a pipe')
    add_run_options(parser)
    add("--open", metavar="FILE", help="show a saved .trace")
    add("--pace", choices=("5", "20", "60", "full"), help="tokens a second at most")
    add("--size", type=_size, metavar="WxH", help="of the window, 1440x900")
    add("--theme", choices=("system", "dark", "light"))
    add("--run", action="store_true", help="start the run at once")
    add("--quit", action="store_true", help="leave when the run has ended")
    add("--out", metavar="FOLDER", help="write window.png, attention.png, run.trace, run.json")
    add("--headless", action="store_true", help="run off screen and write the files")
    add("--json", action="store_true", help="print one JSON object, nothing else")
    return parser


def _size(words: str) -> tuple[int, int]:
    width, _, height = words.partition("x")
    if not (width.isdigit() and height.isdigit() and int(width) and int(height)):
        raise argparse.ArgumentTypeError(f"{words!r} is not a size like 1440x900")
    return int(width), int(height)


if __name__ == "__main__":
    sys.exit(main())
