"""How fast a card is, beside what was foretold: sections of the device check."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from statistics import median
from typing import Any

import torch

from bench import random_model
from bench.device_report import Found, Row, foretold
from bench.device_setting import HuggingFace, Ours, Setting, Writer, ids, prompt
from engine import meter, probe
from engine.batch import Batch
from engine.device_sampling import Knobs, draw
from engine.dispatch import Counter
from engine.errors import EngineError
from engine.events import Dimensions, Sampled
from engine.floors import floors
from engine.generate import Engine
from engine.graphs import Packet
from engine.meter import now_ns
from engine.request import Capture, Request, Sampling
from engine.runners import Runner
from engine.state import State

CONTEXTS = (16, 128, 512, 960)
PROMPTS = (6, 64, 256, 1000)
STREAMS = (1, 2, 4, 8, 16, 32, 64)
BATCH_CONTEXT = 256
WARM = 8  # steps before the clock starts
ROUNDS = 3
LARGE = Dimensions(n_layer=48, n_head=25, n_embd=1600, n_positions=1024, n_vocab=50257)
COPIED = 2**30  # bytes


def limits(setting: Setting) -> Found:
    """What the card can do at most; later sections hold their passes against it."""
    for dtype in setting.dtypes:
        found = probe.measure(setting.device, dtype, 1)
        setting.limits[dtype] = found
        read, product = found.bandwidth / 1e9, found.flops / 1e12
        half = "product" if dtype != "float32" else ""
        rows = [
            ("read", read, "GB/s", "bandwidth"),
            ("product", product, "TFLOP/s", half),
            ("dispatch", found.dispatch_ns / 1e3, "us", "dispatch"),
        ]
        if found.launch_ns is not None:
            rows.append(("launch in a graph", found.launch_ns / 1e3, "us", "launch"))
        for what, measured, unit, key in rows:
            yield Row(f"{dtype} {what}", measured, unit, *foretold(setting.card, key, None))
    n_bytes = COPIED // 16 if setting.dry else COPIED
    source = torch.ones(n_bytes // 4, device=setting.device)
    took = setting.fastest_us(partial(torch.empty_like(source).copy_, source), n_times=2)
    rate = 2 * n_bytes / took / 1e3
    yield Row("copy, read and written", rate, "GB/s", *foretold(setting.card, "copy", None))


def decode(setting: Setting) -> Found:
    """Time a token after prompts of several lengths: eager, recorded, and with our kernels."""
    dtype = setting.dtypes[0]
    runners = [("eager", setting.runner(dtype)), *setting.recorded(dtype)]
    for name, runner in runners:
        yield from _decode(setting, name, Ours(runner), runner)


def hugging_face(setting: Setting) -> Found:
    """The same with transformers, in the same number type."""
    dtype = setting.dtypes[0]
    try:
        theirs = HuggingFace(setting, dtype)
    except ImportError as error:
        yield f"left out: {error}"
        return
    yield from _decode(setting, "Hugging Face", theirs, setting.runner(dtype), theory=False)


def compiled(setting: Setting) -> Found:
    """The same with a static cache, which its generate() compiles; the first call takes long."""
    try:
        model = HuggingFace(setting, setting.dtypes[0]).model
    except ImportError as error:
        yield f"left out: {error}"
        return
    given = torch.tensor([ids(128, setting.size.n_vocab)], device=setting.device)
    write = partial(_write_static, model, given)
    for n in (2, 64):  # what is compiled at first does not count
        write(n)
    few, many = (min(_timed(setting, partial(write, n)) for _ in range(2)) for n in (2, 64))
    name = "Hugging Face, static and compiled"
    took = (many - few) / 62
    yield Row(f"{name} at 128", took, "us/token", *foretold(setting.card, name, None))


def recording(setting: Setting) -> Found:
    """A run that tells all it found over one that tells nothing, time a token, in turns."""
    for name, runner in setting.recorded(setting.dtypes[0]):
        engine, ratios = setting.engine(runner), []
        for _ in range(ROUNDS):
            on, off = (_token_us(engine, setting, recording=x) for x in (True, False))
            ratios.append(on / off)
        what, prediction = "tells all over tells nothing", foretold(setting.card, "recording", None)
        yield Row(f"{name}: {what}", median(ratios), "", *prediction)


def draw_and_packet(setting: Setting) -> Found:
    """The draw by itself, and a packet from the device to the CPU."""
    size, where = setting.size, setting.device
    logits = torch.randn(size.n_vocab, device=where)
    knobs, coin = Knobs(where), torch.full((1,), 0.5, dtype=torch.float64, device=where)
    knobs.turn(Sampling())
    counter = Counter()
    with counter:
        draw(logits, knobs, coin)
    launch_ns = next((x.launch_ns for x in setting.limits.values()), None)
    least = None if launch_ns is None else counter.n_launches * launch_ns / 1e3

    def drawn() -> None:
        draw(logits, knobs, coin)

    took = setting.fastest_us(setting.queue().record(drawn))
    yield Row("recorded draw", took, "us", *foretold(setting.card, "draw", least))
    packet = Packet(State(size, device=where), size.n_vocab)
    slot = setting.queue().slot(len(packet.numbers))

    def bring() -> None:
        slot.begin()
        slot.take(packet.numbers)
        slot.wait()

    took = setting.fastest_us(bring, n_times=1, goes=20)
    yield Row("packet, sent and waited for", took, "us")
    yield Row("packet", packet.numbers.nbytes / took / 1e3, "GB/s")


def first_token(setting: Setting) -> Found:
    """From a prompt to its first token: the bare pass, then a whole run that records it."""
    runner = setting.runner(setting.dtypes[0])
    engine = setting.engine(runner)
    for n in setting.fitting(PROMPTS, more=1):
        given = ids(n, setting.size.n_vocab)
        took = setting.fastest_us(partial(Ours(runner).read, given), n_times=1)
        found = setting.floors(runner, "prefill", 0, n)
        least = None if found is None else found.predicted_ns / 1e3
        yield Row(f"prompt of {n}, bare", took, "us", *foretold(setting.card, "", least))
        runs = [_first_us(engine, n) for _ in range(ROUNDS)]
        yield Row(f"prompt of {n}, a recorded run", median(runs), "us")


def batches(setting: Setting) -> Found:
    """Steps of several streams at once, eager, and how many more tokens a second that gives."""
    runner, n_vocab = setting.runner(setting.dtypes[0]), setting.size.n_vocab
    context = min(BATCH_CONTEXT, setting.size.n_positions // 2)
    took: dict[int, float] = {}
    least: dict[int, float | None] = {}
    for n in STREAMS[:2] if setting.dry else STREAMS:
        try:
            batch = Batch(runner, n)
        except (EngineError, torch.OutOfMemoryError) as error:
            yield f"they end before {n} streams: {error}"
            break
        for stream in range(n):
            batch.prefill(stream, ids(context, n_vocab))
        token, counter = dict.fromkeys(range(n), 1), Counter()
        with counter:
            batch.step(token)
        took[n] = setting.fastest_us(partial(batch.step, token), n_times=4, goes=3)
        least[n] = _batch_us(setting, runner, context, n, counter)
        yield Row(f"{n} streams", took[n], "us/step", *foretold("", "", least[n]))
        yield Row(f"{n} streams", 1e6 * n / took[n], "tokens/s")
        del batch
    n = max(took)
    one, many = least[1], least[n]
    by_floors = n * one / many if one and many else None
    what = f"{n} streams over one"
    yield Row(what, n * took[1] / took[n], "", *foretold(setting.card, what, by_floors))


def large(setting: Setting) -> Found:
    """Decode of the largest GPT-2's shape, its layers all alike."""
    size = replace(setting.size, n_layer=3) if setting.dry else LARGE
    source = random_model.checkpoint(size, alike=True)
    other = replace(setting, source=source)
    try:
        runners = list(other.recorded(setting.dtypes[0]))
    except (EngineError, torch.OutOfMemoryError) as error:
        yield f"left out: {error}"
        return
    for name, runner in runners:
        yield from _decode(other, f"1.5B {name}", Ours(runner), runner)


def _decode(
    setting: Setting,
    name: str,
    writer: Writer,
    runner: Runner,
    *,
    theory: bool = True,
) -> Found:
    """A row for each prompt: wall time a token, and the device's own where it has a clock."""
    for context in setting.fitting(CONTEXTS, more=WARM + setting.n_steps):
        times = [_steps(writer, context, setting) for _ in range(ROUNDS)]
        wall = median(wall for wall, _ in times)
        middle = context + WARM + setting.n_steps // 2
        found = setting.floors(runner, "decode", middle, 1)
        least = None if found is None else found.memory_ns / 1e3
        by_floors = found.predicted_ns / 1e3 if found and theory else None
        fraction = None if least is None else least / wall
        prediction = foretold(setting.card, name, by_floors)
        yield Row(f"{name} at {context}", wall, "us/token", *prediction, of_floor=fraction)
        device = [took for _, took in times if took is not None]
        if device:
            took = median(device)
            fraction = None if least is None else least / took
            what = f"{name} at {context}, device"
            yield Row(what, took, "us/token", *prediction, of_floor=fraction)


def _steps(writer: Writer, context: int, setting: Setting) -> tuple[float, float | None]:
    """Microseconds a token by the wall and, in the middle, by the device; greedy."""
    token = int(writer.read(ids(context, setting.size.n_vocab)).argmax())
    start, device = 0, []
    for n in range(WARM + setting.n_steps):
        if n == WARM:
            start = now_ns()
        token = int(writer.step(token, position=context + n).argmax())
        device.append(writer.device_ns())
    wall = (now_ns() - start) / setting.n_steps / 1e3
    told = [ns / 1e3 for ns in device[WARM:] if ns is not None]
    return wall, median(told) if told else None


def _token_us(engine: Engine, setting: Setting, *, recording: bool) -> float:
    """Time a token after the first, in a run that only counts."""
    request = Request(
        prompt(16),
        max_tokens=WARM + setting.n_steps,
        sampling=Sampling(temperature=1.0),
        capture=Capture(attention=recording, residual=recording, logits=recording),
    )
    ends = [now_ns() for event in engine.generate(request) if isinstance(event, Sampled)]
    return (ends[-1] - ends[0]) / (len(ends) - 1) / 1e3


def _first_us(engine: Engine, n: int) -> float:
    start = now_ns()
    for event in engine.generate(Request(prompt(n), max_tokens=1)):
        if isinstance(event, Sampled):
            return (now_ns() - start) / 1e3
    raise RuntimeError("the run ended before its first token")


def _batch_us(
    setting: Setting, runner: Runner, context: int, n_streams: int, counted: Counter
) -> float | None:
    """What a step of so many streams should take: weights once, all else for each."""
    known = setting.limits.get(runner.dtype)
    if known is None:
        return None
    one = meter.work(setting.size, context, 1, item_weight=runner.item_weight, item_kv=4)
    all_ = replace(one, flops=n_streams * one.flops, kv_bytes=n_streams * one.kv_bytes)
    found = floors(all_, known, n_operations=counted.n_operations, n_launches=counted.n_launches)
    return found.predicted_ns / 1e3


def _write_static(model: Any, given: torch.Tensor, n: int) -> None:  # noqa: ANN401
    with torch.inference_mode():
        model.generate(
            given,
            max_new_tokens=n,
            min_new_tokens=n,
            do_sample=False,
            cache_implementation="static",
            pad_token_id=0,
        )


def _timed(setting: Setting, call: partial[None]) -> float:
    setting.synchronize()
    start = now_ns()
    call()
    setting.synchronize()
    return (now_ns() - start) / 1e3
