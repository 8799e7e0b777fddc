"""Time decode and time to first token of our engine against Hugging Face's eager GPT-2.

    python packaging/bench/decode.py [--tokens 64] [--rounds 3] [--threads 1] [--json FILE]

Same weights, same float32, same threads, greedy, with a KV cache on both sides. Ours is
`Engine.generate` with all that a run does: tokenizing, the float64 sampling rule over all ids, and
every row recorded in a trace; theirs is the bare model and argmax. The rounds are interleaved, so
that a machine that slows down slows both. Needs the packages of the test extra.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch  # noqa: E402 - the path comes first
import transformers  # noqa: E402

from engine.generate import Engine  # noqa: E402
from engine.meter import machine  # noqa: E402
from engine.request import Request, Sampling  # noqa: E402
from engine.trace import Trace  # noqa: E402

MODEL = ROOT / "resources" / "models" / "decodescope-6x8"
PROMPT = [7454, 2402, 257, 640, 11, 612, 373, 257, 1310, 2576, 3706, 20037, 13, 1881, 6076, 1110]
LONG = PROMPT * 8
TEXT = {16: "Once upon a time, there was a little girl named Lily. One spring day"}
TEXT[128] = TEXT[16] * 8

Answer = tuple[list[int], float, float]  # ids, seconds to the first, seconds for the others


def ours(engine: Engine, prompt: list[int], n_tokens: int) -> Answer:
    """Greedy decode by Engine.generate: every event made, everything recorded in a trace."""
    request = Request(TEXT[len(prompt)], max_tokens=n_tokens, sampling=Sampling(temperature=0))
    trace, first = Trace(), 0.0
    start = time.perf_counter()
    for event in engine.generate(request):
        trace.append(event)
        if not first and trace.samples:
            first = time.perf_counter()
    assert [token.id for token in trace.tokens[: trace.n_prompt]] == prompt
    ids = [sampled.token.id for sampled in trace.samples]
    return ids, first - start, time.perf_counter() - first


def theirs(model: Any, prompt: list[int], n_tokens: int) -> Answer:  # noqa: ANN401 - untyped
    """Greedy decode by the model itself, without generate()'s own costs."""
    with torch.inference_mode():
        start = time.perf_counter()
        out = model(input_ids=torch.tensor([prompt]), use_cache=True, logits_to_keep=1)
        ids = [int(out.logits[0, -1].numpy().argmax())]
        first = time.perf_counter()
        for _ in range(n_tokens - 1):
            out = model(
                input_ids=torch.tensor([ids[-1:]]),
                past_key_values=out.past_key_values,
                use_cache=True,
                logits_to_keep=1,
            )
            ids.append(int(out.logits[0, -1].numpy().argmax()))
    return ids, first - start, time.perf_counter() - first


def measure(*, n_tokens: int, n_rounds: int, n_threads: int) -> dict[str, Any]:
    """Medians over the rounds, after one round that does not count."""
    torch.set_num_threads(n_threads)
    engine = Engine.load(MODEL, "cpu", "float32", n_threads=n_threads)
    model = transformers.GPT2LMHeadModel.from_pretrained(
        MODEL, attn_implementation="eager", dtype=torch.float32
    ).eval()
    sides: dict[str, Callable[[list[int], int], Answer]] = {
        "ours": lambda prompt, n: ours(engine, prompt, n),
        "theirs": lambda prompt, n: theirs(model, prompt, n),
    }
    rates: dict[str, list[float]] = {side: [] for side in sides}
    ttft: dict[str, dict[int, list[float]]] = {side: {16: [], 128: []} for side in sides}
    answers: dict[str, list[int]] = {}
    for round_ in range(n_rounds + 1):
        for side, decode in sides.items():
            ids, first, rest = decode(PROMPT, n_tokens)
            _, first_long, _ = decode(LONG, 1)
            answers[side] = ids
            if round_:
                rates[side].append((n_tokens - 1) / rest)
                ttft[side][16].append(first * 1e3)
                ttft[side][128].append(first_long * 1e3)
    return {
        "machine": machine("cpu", n_threads).name,
        "threads": n_threads,
        "same_ids": answers["ours"] == answers["theirs"],
        "decode_tok_s": {side: round(median(rates[side]), 1) for side in sides},
        "decode_ratio": round(
            median(a / b for a, b in zip(rates["ours"], rates["theirs"], strict=True)), 2
        ),
        "ttft_ms": {
            side: {str(n): round(median(times), 2) for n, times in ttft[side].items()}
            for side in sides
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    warnings.simplefilter("ignore", FutureWarning)  # their cache argument is being renamed
    if options.tokens < 2 or options.rounds < 1 or options.threads < 1:
        parser.error("at least 2 tokens, 1 round and 1 thread")
    result = measure(n_tokens=options.tokens, n_rounds=options.rounds, n_threads=options.threads)
    for name, value in result.items():
        print(f"{name:14} {value}")
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
