"""Whether a card gives the right answers: sections of the device check, each rows and sentences."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from numpy.typing import NDArray

from bench.device_report import Found, Row, foretold
from bench.device_setting import (
    Floats,
    HuggingFace,
    Ours,
    Setting,
    Writer,
    ids,
    prompt,
)
from engine import state as states
from engine.events import Sampled
from engine.generate import Engine
from engine.graphs import GraphRunner
from engine.models import kernels
from engine.request import Request, Sampling
from engine.runners import Rows
from engine.state import State
from engine.trace import Trace

ROOT = Path(__file__).resolve().parents[2]
EXACT = 1e-5  # of the largest: float32 summed in another order; TF32 would be off by 1e-3
KL = 5e-3  # nats, the mean over positions, that rounding to 16 bits may cost
N_READ, N_STEPS = 140, 12  # two chunks of a prefill, then steps that go on to another graph
TESTS_S = 150  # seconds that the project's own tests may take
MIB = 2**20


def float32(setting: Setting) -> Found:
    """Logits and rows of the eager runner in float32 against the CPU's."""
    card, processor = setting.runner("float32"), setting.runner("float32", device="cpu")
    logits = [_answers(Ours(runner), setting) for runner in (card, processor)]
    yield Row("eager logits against the CPU", _off(*logits), "", EXACT, "at most")
    rows = [_arrays(runner.rows(0, _n_read(setting))) for runner in (card, processor)]
    for name, found, wanted in zip(("q", "k", "v", "residual"), *rows, strict=True):
        yield Row(f"{name} against the CPU", _off(found, wanted), "", EXACT, "at most")


def our_kernels(setting: Setting) -> Found:
    """Whether the kernels can be used here and, if so, whether they answer as the plain step."""
    for dtype in setting.dtypes:
        runner = setting.runner(dtype)
        reason = kernels.obstacle(runner.weights, runner.state)
        if reason is not None:
            yield f"left out in {dtype}: {reason}"
            continue
        reason = kernels.failure(runner.weights, runner.state)
        if reason is not None:
            yield f"not used in {dtype}: {reason}"
        yield Row(f"{dtype}: right answers, 1 = all", float(reason is None), "", 1, "exactly")


def runs(setting: Setting) -> Found:
    """A run with a slider moved and a branch: the CPU's, eager on the card, and recorded."""
    wanted = _story(setting.engine(setting.runner("float32", device="cpu")))
    runners = [("eager", setting.runner("float32")), *setting.recorded("float32")]
    for name, runner in runners:
        found = _story(setting.engine(runner))
        alike = [a.token.id == b.token.id for a, b in _pairs(found, wanted)]
        n_alike = alike.index(False) if False in alike else len(alike)
        n = len(wanted[0].samples) + len(wanted[1].samples)
        yield Row(f"{name}: tokens as the CPU's", n_alike, "", n, "exactly")
        off = _off(*(_logits(story)[: n_alike + 1] for story in (found, wanted)))
        yield Row(f"{name}: logits against the CPU", off, "", EXACT, "at most")


def sixteen_bits(setting: Setting) -> Found:
    """How far 16-bit weights move what is expected next."""
    exact = _answers(Ours(setting.runner("float32")), setting)
    for dtype in setting.dtypes:
        if dtype == "float32":
            continue
        for name, runner in [("eager", setting.runner(dtype)), *setting.recorded(dtype)]:
            kl = _kl(exact, _answers(Ours(runner), setting))
            yield Row(f"{dtype} {name}: KL, mean", float(kl.mean()), "nats", KL, "at most")
            yield Row(f"{dtype} {name}: KL, worst", float(kl.max()), "nats")


def hugging_face(setting: Setting) -> Found:
    """Our float32 logits against those of transformers on the same card."""
    try:
        theirs = HuggingFace(setting, "float32")
    except ImportError as error:
        yield f"left out: {error}"
        return
    ours = _answers(Ours(setting.runner("float32")), setting)
    off = _off(ours, _answers(theirs, setting))
    yield Row("eager logits against Hugging Face", off, "", EXACT, "at most")


def no_waiting(setting: Setting) -> Found:
    """Recorded decode where anything but the wait for a packet would be an error."""
    for name, runner in setting.recorded(setting.dtypes[0]):
        writer, first = Ours(runner), 16
        token = int(writer.read(ids(first, setting.size.n_vocab)).argmax())
        if not setting.dry:
            torch.cuda.set_sync_debug_mode("error")
        try:
            for position in range(first, first + setting.n_steps):
                token = int(writer.step(token, position=position).argmax())
                runner.rows(position, 1)
        finally:
            if not setting.dry:
                torch.cuda.set_sync_debug_mode("default")
        what = (
            f"{name}: tokens, nobody watched" if setting.dry else f"{name}: tokens without a wait"
        )
        yield Row(what, setting.n_steps, "", setting.n_steps, "exactly")


def memory(setting: Setting) -> Found:
    """The ledger against what torch allocated, and what graphs take beside it."""
    size = setting.size
    reserved = State(size).reserved
    kv = 2 * 4 * size.n_layer * size.n_embd * size.n_positions
    yield Row("KV cache reserved", reserved.kv, "bytes", kv, "exactly")
    if setting.dry:
        yield "torch tells no allocations of a CPU, so the ledger was not held against them"
        return
    before = torch.cuda.memory_allocated()
    kept = State(size, device=setting.device)
    off = torch.cuda.memory_allocated() - before - states.bytes_for(size)
    yield Row("state beyond the ledger", abs(off), "bytes", 2 * MIB, "at most")
    del kept
    before = torch.cuda.memory_allocated()
    runner = setting.runner(setting.dtypes[0])
    off = torch.cuda.memory_allocated() - before
    off -= states.bytes_for(size) + runner.weight_bytes
    yield Row("runner beyond the ledger", off / 1e6, "MB")
    before = torch.cuda.memory_reserved()
    recorded = GraphRunner(runner, setting.queue())
    taken = (torch.cuda.memory_reserved() - before) / 1e6
    yield Row("graphs and packets", taken, "MB", *foretold(setting.card, "graphs", None))
    del recorded


def tests(setting: Setting) -> Found:
    """The project's own tests that need a card; a dry run only collects a few of them."""
    names = [str(ROOT), str(ROOT / "packaging"), str(ROOT / "tests")]
    # Not the project's settings: they name plugins that a borrowed machine may not have.
    settings = f"[pytest]\npythonpath = {' '.join(names)}\nmarkers =\n  cuda\n  slow\n  timeout\n"
    command = [sys.executable, "-m", "pytest", "-q", "-m", "cuda", "-p", "no:cacheprovider"]
    command += ["--import-mode=importlib", f"--rootdir={ROOT}"]
    command += ["--continue-on-collection-errors"]  # a file may need what is not installed
    command += (
        ["--collect-only", "tests/engine/test_graphs.py"] if setting.dry else ["tests/engine"]
    )
    with TemporaryDirectory(prefix="decodescope-tests-") as place:
        (Path(place) / "pytest.ini").write_text(settings)
        done = subprocess.run(
            [*command, "-c", str(Path(place) / "pytest.ini")],
            cwd=ROOT,
            env=os.environ | {"HF_HUB_OFFLINE": "1"},
            capture_output=True,
            text=True,
            timeout=TESTS_S,
        )
    said = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    yield from (line for line in said if line.startswith(("FAILED", "ERROR")))
    yield said[-1] if said else "nothing was said"
    if "No module named pytest" not in done.stderr:
        yield Row("exit status of pytest", done.returncode, "", 0, "exactly")


def _answers(writer: Writer, setting: Setting) -> Floats:
    """Logits (1 + n, V): after a prompt, and after each of n given tokens."""
    n = _n_read(setting)
    given = ids(n + N_STEPS, setting.size.n_vocab)
    found = [writer.read(given[:n])]
    found += [writer.step(given[at], position=at) for at in range(n, n + N_STEPS)]
    return np.stack(found)


def _n_read(setting: Setting) -> int:
    return min(N_READ, setting.size.n_positions - N_STEPS)


def _story(engine: Engine) -> tuple[Trace, Trace]:
    """A run in which the temperature falls after 8 tokens, then a branch from its sixth."""
    warm = Sampling(temperature=1.0, top_k=0, top_p=0.95)
    request = Request(prompt(32), max_tokens=24, sampling=warm, seed=1)
    job, trace, order = engine.generate(request), Trace(), None
    while trace.ended is None:
        event = job.send(order)
        trace.append(event)
        eighth = isinstance(event, Sampled) and len(trace.samples) == 8
        order = Sampling(temperature=0.5) if eighth else None
    branch = trace.cut(6)
    for event in engine.branch(trace, 6, 99, request):
        branch.append(event)
    return trace, branch


def _pairs(a: tuple[Trace, Trace], b: tuple[Trace, Trace]) -> Iterator[tuple[Sampled, Sampled]]:
    for x, y in zip(a, b, strict=True):
        yield from zip(x.samples, y.samples, strict=False)


def _logits(story: tuple[Trace, Trace]) -> Floats:
    """Of all passes, (n, V)."""
    passes = [forward.logits for trace in story for forward in trace.forwards]
    return np.stack([logits for logits in passes if logits is not None])


def _arrays(rows: Rows) -> Sequence[Floats]:
    return [array for array in (rows.q, rows.k, rows.v, rows.residual) if array is not None]


def _off(found: Floats, wanted: Floats) -> float:
    """The largest difference, as a part of the largest number."""
    return float(np.abs(found - wanted).max() / np.abs(wanted).max())


def _kl(exact: Floats, rounded: Floats) -> NDArray[np.float64]:
    """Of each row of logits (n, V), the sum of p (log p - log q): (n,) nats."""
    p, q = (_log_softmax(x.astype(np.float64)) for x in (exact, rounded))
    kl: NDArray[np.float64] = (np.exp(p) * (p - q)).sum(1)
    return kl


def _log_softmax(x: NDArray[np.float64]) -> NDArray[np.float64]:
    x = x - x.max(1, keepdims=True)
    y: NDArray[np.float64] = x - np.log(np.exp(x).sum(1, keepdims=True))
    return y
