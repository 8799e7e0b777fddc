"""A run in memory: one step after the other, the same numbers wherever it was interrupted."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import fmean
from typing import Any

import torch

from embedded_model import arithmetic, network, optimizer
from embedded_model.batches import Batches
from embedded_model.checkpoint import Checkpoint
from embedded_model.loss import cross_entropy
from embedded_model.monitor import measure
from embedded_model.refusal import Refusal
from embedded_model.settings import Settings
from embedded_model.streams import Streams
from engine.tokenizer import N_VOCAB


class Training:
    """A network, its optimizer, and how far they have come.

    What a step does depends on the settings, the streams, the steps before it, the arithmetic and
    the number of threads, and on nothing else: the schedule goes by steps, never by the clock.

    Attributes:
        step: steps taken.
        log: what was measured, a line each.
    """

    def __init__(
        self, settings: Settings, streams: Streams, *, arithmetic_name: str, n_threads: int
    ) -> None:
        """Before the first step.

        Raises:
            Refusal: the streams do not fit the settings.
        """
        if len(streams.vocabulary) != settings.model.n_rows:
            raise Refusal(
                f"The token streams have {len(streams.vocabulary):,} rows and the settings "
                f"{settings.model.n_rows:,}: delete streams.npz, and name the texts with --corpus."
            )
        torch.set_num_threads(n_threads)
        self.settings, self.arithmetic, self.n_threads = settings, arithmetic_name, n_threads
        self.step = 0
        self.log: tuple[dict[str, Any], ...] = ()
        self._read_before = 0  # tokens that the weights had read when this run began
        self._losses: list[float] = []  # since the last line of the log
        self._streams, self._digest = streams, streams.digest
        self._batches = Batches(settings, streams)
        self._rest = math.log(N_VOCAB - settings.model.n_rows)  # tokens behind the last row
        self._network = network.begin(settings.model, settings.start, seed=settings.run.seed)
        self._dtype = arithmetic.DTYPES[arithmetic_name]
        self._optimizer = optimizer.Optimizer(
            self._network, settings.optimizer, arithmetic=self._dtype
        )

    @classmethod
    def begun(
        cls,
        settings: Settings,
        streams: Streams,
        *,
        n_threads: int,
        origin: Checkpoint | None = None,
    ) -> Training:
        """A new run, from random weights or from another run's.

        Raises:
            Refusal: the other run's network or vocabulary is another one.
        """
        torch.set_num_threads(n_threads)
        if origin is not None:  # the weights began as that run's did
            settings = replace(settings, start=origin.settings.start)
        run = cls(settings, streams, arithmetic_name=arithmetic.fastest(), n_threads=n_threads)
        if origin is not None:
            if origin.settings.model != settings.model or origin.digest != run._digest:
                raise Refusal(
                    "--from needs a run of the same [model] on the same token streams: copy its "
                    "streams.npz into the new folder, and its [model] into the settings."
                )
            run._network.load_state_dict(dict(origin.weights))
            run._read_before = origin.read_before + origin.step * origin.settings.run.batch_tokens
        return run

    @classmethod
    def resumed(cls, saved: Checkpoint, streams: Streams, *, n_threads: int) -> Training:
        """A run where it was saved.

        Raises:
            Refusal: the streams are not those it began with.
        """
        run = cls(saved.settings, streams, arithmetic_name=saved.arithmetic, n_threads=n_threads)
        if run._digest != saved.digest:
            raise Refusal(
                "The token streams are not those this run began with: put its own streams.npz "
                "beside its checkpoint."
            )
        run._network.load_state_dict(dict(saved.weights))
        run._optimizer.load(saved.optimizer)
        run.step, run.log, run._losses = saved.step, saved.log, list(saved.losses)
        run._read_before = saved.read_before
        return run

    @property
    def finished(self) -> bool:
        """Whether the whole run is over."""
        return self.step >= self.settings.n_steps

    def advance(self) -> float:
        """Take one step, and give its loss in nats a scored token."""
        x, y = map(torch.from_numpy, self._batches.at(self.step))  # (B, T) each
        low = self._dtype != torch.float32
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=low):
            states = self._network(x).flatten(0, 1)  # (B T, C)
        table = self._network.wte.weight
        loss = cross_entropy(states, table, y.flatten(), rest=self._rest)
        loss.backward()  # type: ignore[no-untyped-call]
        done = self.step / self.settings.n_steps
        self._optimizer.step(optimizer.rate(done, self.settings.optimizer))
        self.step += 1
        self._losses.append(loss.item())
        return self._losses[-1]

    def measure(self) -> dict[str, Any] | None:
        """A new line of the log if one is due after this step."""
        if self.step % self.settings.run.measure_every and not self.finished:
            return None
        line = {
            "step": self.step,
            "tokens": self.step * self.settings.run.batch_tokens,
            "loss": fmean(self._losses),
            **measure(self._network, self._streams),
        }
        self.log, self._losses = (*self.log, line), []
        return line

    def checkpoint(self) -> Checkpoint:
        """Everything to go on from; its tensors are the run's own, not copies."""
        return Checkpoint(
            settings=self.settings,
            step=self.step,
            read_before=self._read_before,
            arithmetic=self.arithmetic,
            n_threads=self.n_threads,
            digest=self._digest,
            losses=tuple(self._losses),
            log=self.log,
            weights={name: p.detach() for name, p in self._network.named_parameters()},
            optimizer=self._optimizer.state(),
        )
