"""What the sections of the device check share: the model, its runners, what a pass must take."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from bench import random_model
from engine import meter
from engine.checkpoint import Checkpoint
from engine.dispatch import operations
from engine.events import Dimensions, Phase
from engine.floors import Floors, Limits, floors
from engine.generate import Engine
from engine.graphs import GraphRunner
from engine.meter import now_ns
from engine.models import kernels
from engine.queues import CudaQueue, Queue
from engine.request import Sampling
from engine.runners import Runner

Floats = NDArray[np.float32]

GREEDY = Sampling(temperature=0)
TINY = Dimensions(n_layer=2, n_head=2, n_embd=32, n_positions=192, n_vocab=50257)
KERNELS = "recorded, own kernels"


@dataclass
class Setting:
    """Where it runs and with what. Every section makes its own runners, so that none spoils it."""

    device: str  # "cuda", or "cpu" for a dry run
    source: Checkpoint
    dtypes: tuple[str, ...]  # the usual one first
    n_steps: int  # a timing of decode takes so many
    limits: dict[str, Limits] = field(default_factory=dict)  # by dtype, as far as measured

    @property
    def size(self) -> Dimensions:
        return self.source.config.dimensions

    @property
    def dry(self) -> bool:
        """Whether this only tries the script."""
        return self.device == "cpu"

    @property
    def card(self) -> str:
        """Its name."""
        return meter.machine(self.device, 1).name

    def runner(self, dtype: str, *, device: str | None = None) -> Runner:
        """An eager one."""
        n_threads = 1 if self.dry else None
        where = device or self.device
        return Runner(self.source, device=where, dtype=dtype, n_threads=n_threads, kind="linear")

    def recorded(self, dtype: str) -> Iterator[tuple[str, Runner]]:
        """Runners of recorded steps: of torch's operations, and of our kernels where they serve."""
        yield "recorded", GraphRunner(self.runner(dtype), self.queue())
        eager = self.runner(dtype)
        where = eager.weights, eager.state
        if kernels.obstacle(*where) is None and kernels.failure(*where) is None:
            yield KERNELS, GraphRunner(eager, self.queue(), tick=kernels.tick)

    def queue(self) -> Queue:
        return Queue() if self.dry else CudaQueue()

    def engine(self, runner: Runner) -> Engine:
        return Engine(runner, model=self.source.model, sha256=self.source.sha256)

    def fitting(self, counts: Sequence[int], *, more: int) -> list[int]:
        """Those prompts after which so many tokens still fit."""
        return [n for n in counts if n + more <= self.size.n_positions]

    def synchronize(self) -> None:
        if not self.dry:
            torch.cuda.synchronize()

    def fastest_us(self, call: Callable[[], object], *, n_times: int = 20, goes: int = 5) -> float:
        """Of several goes, the shortest: how long a call takes when many wait in a row."""
        times = []
        for _ in range(goes):
            self.synchronize()
            start = now_ns()
            for _ in range(n_times):
                call()
            self.synchronize()
            times.append((now_ns() - start) / n_times / 1e3)
        return min(times)

    def floors(self, runner: Runner, phase: Phase, first: int, count: int) -> Floors | None:
        """What a pass must take; None where the limits of this machine are not known."""
        limits = self.limits.get(runner.dtype)
        if limits is None:
            return None
        item = runner.item_weight
        work = meter.work(runner.dimensions, first, count, item_weight=item, item_kv=4)
        n_operations, n_launches = operations(runner, phase, first, count)
        return floors(work, limits, n_operations=n_operations, n_launches=n_launches)


class Writer(Protocol):
    """Something that reads ids and says what it expects next: (V,) float32 logits."""

    def read(self, ids: Sequence[int]) -> Floats:
        """A prompt from position 0 on."""

    def step(self, id: int, *, position: int) -> Floats:
        """One more token."""

    def device_ns(self) -> int | None:
        """How long the last step took by the device's clock, if that can be told."""


class Ours:
    """A runner; the device may go on by itself, greedily."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner

    def read(self, ids: Sequence[int]) -> Floats:
        for _ in self.runner.prefill(ids, first=0):
            pass
        return self.runner.logits()

    def step(self, id: int, *, position: int) -> Floats:
        self.runner.expect(GREEDY, 0)
        self.runner.step(id, position=position)
        return self.runner.logits()

    def device_ns(self) -> int | None:
        return self.runner.device_ns()


class HuggingFace:
    """GPT2LMHeadModel with the same weights, without the costs of its generate()."""

    def __init__(self, setting: Setting, dtype: str) -> None:
        """Raises ImportError where transformers is not installed."""
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
        transformers = import_module("transformers")
        config = transformers.GPT2Config(**random_model.config(setting.size))
        self.model: Any = transformers.GPT2LMHeadModel(config)
        weights = {
            f"transformer.{name}": torch.from_numpy(np.array(tensor))
            for name, tensor in setting.source.tensors.items()
        }
        self.model.load_state_dict(weights, strict=False)  # the head is the token embedding
        self.model.tie_weights()
        self.model = self.model.to(setting.device, getattr(torch, dtype)).eval()
        self._device = setting.device
        self._past: Any = None

    def read(self, ids: Sequence[int]) -> Floats:
        self._past = None
        return self._pass(list(ids))

    def step(self, id: int, *, position: int) -> Floats:
        return self._pass([id])

    def device_ns(self) -> int | None:
        return None

    def _pass(self, ids: list[int]) -> Floats:
        with torch.inference_mode():
            out = self.model(
                input_ids=torch.tensor([ids], device=self._device),
                past_key_values=self._past,
                use_cache=True,
                logits_to_keep=1,
            )
        self._past = out.past_key_values
        logits: Floats = out.logits[0, -1].float().cpu().numpy()
        return logits


def ids(n: int, n_vocab: int) -> list[int]:
    """So many different ids, far apart."""
    return [7919 * place % n_vocab for place in range(n)]


def prompt(n: int) -> str:
    """A text of so many tokens."""
    return "the" + " the" * (n - 1)
