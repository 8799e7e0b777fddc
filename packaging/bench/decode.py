"""Time our engine against every other that is installed, on the same weights, in one run.

    python packaging/bench/decode.py [--quick] [--threads N] [--rounds N] [--tokens N]
                                     [--prompts N ...] [--dtypes D ...] [--json FILE]
                                     [--model random|embedded|FOLDER]

Peers: Hugging Face's GPT-2, eager and sdpa (`transformers`), CTranslate2 (`ctranslate2`) and
llama.cpp (`llama-cpp-python`). What is not installed or cannot do a dtype is left out with a word;
nothing is downloaded. The weights are GPT-2 124M's shape filled with random numbers, the same for
all, unless --model says otherwise.

Every engine has a process of its own, so that its memory is its own. They write in turn, greedily,
one stream, so that a machine that slows down slows all. Before the first round each reads every
prompt without a clock, and before each run it writes two tokens, so that nobody starts cold. What
others use of the processors is read from /proc/stat during each run; disturbed runs do not count
while undisturbed ones are left.

TTFT: from the call to the first token, ours with tokenizing. Tok/s: tokens after the first over the
seconds after the first. Load: from the file, warm, to a usable engine; libraries are imported
before, and ours has loaded once without a clock, so that it knows how this machine multiplies best.
Peak: the most resident memory of the process. Floor: the time that the bytes and multiplications of
a pass take at the best rates torch showed in this run, over the time it took; weights that fit in
the processor's cache may pass 100 %.

--dtypes says what weights are rounded to. Whether an engine widens them as it reads them or rounds
what it multiplies too is its own matter; int8 is llama.cpp's Q8_0.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]
sys.path[:1] = [str(ROOT), str(ROOT / "packaging")]  # instead of this folder

from bench import random_model, report  # noqa: E402 - the path comes first
from bench.race import Race  # noqa: E402
from bench.table import rows  # noqa: E402
from engine import models  # noqa: E402
from engine.config import read_config  # noqa: E402
from engine.errors import EngineError  # noqa: E402
from engine.meter import machine  # noqa: E402

PROMPTS = [16, 128, 512, 960]
DTYPES = ["float32", "float16", "bfloat16", "int8"]
QUICK = {"rounds": 1, "tokens": 16, "prompts": [16]}
RANDOM = "random"


def main() -> None:
    options = _options()
    with TemporaryDirectory(prefix="decodescope-bench-") as place:
        try:
            folder = _folder(options.model, Path(place))
            size = read_config(folder).dimensions
        except EngineError as error:
            sys.exit(str(error))
        room = size.n_positions - options.tokens
        race = Race(
            size, [n for n in options.prompts if n <= room], options.threads, options.tokens
        )
        if left := [n for n in options.prompts if n > room]:
            race.notes.append(f"prompts of {left} left out: the context is {size.n_positions}")
        race.run(options.dtypes, options.rounds, folder=folder, place=Path(place))
    print(
        f"{machine('cpu', options.threads).name}, threads: {options.threads}, model: "
        f"{options.model}, tokens: {options.tokens}, rounds: {options.rounds}"
    )
    if not race.runs:
        sys.exit("\n".join([*race.notes, "nothing was timed"]))
    print("\n".join(report.lines(race)))
    if options.json:
        found = rows(race.runs, race.loaded, race.roofs, threads=options.threads)
        options.json.write_text(json.dumps([asdict(row) for row in found], indent=1) + "\n")


def _folder(model: str, place: Path) -> Path:
    """Where the weights are; random ones are written first."""
    if model != RANDOM:
        return models.find(model)
    random_model.write(place / "gpt2-random")
    return place / "gpt2-random"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one short round of one prompt")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=64, help="to write after each prompt")
    parser.add_argument(
        "--prompts", type=int, nargs="+", default=PROMPTS, metavar="N", help="multiples of 16"
    )
    parser.add_argument("--dtypes", nargs="+", choices=DTYPES, default=DTYPES[:1])
    parser.add_argument("--model", default=RANDOM, metavar=f"{RANDOM}|embedded|FOLDER")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows as objects")
    if parser.parse_known_args()[0].quick:
        parser.set_defaults(**QUICK)
    options = parser.parse_args()
    if options.tokens < 2 or options.rounds < 1 or options.threads < 1:
        parser.error("at least 2 tokens, 1 round and 1 thread")
    if any(n < 16 or n % 16 for n in options.prompts):
        parser.error("prompts are multiples of 16 tokens")
    return options


if __name__ == "__main__":
    main()
