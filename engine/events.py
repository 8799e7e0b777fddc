"""The six frozen records that a run yields, in the order R T (F S)* E, and what they hold.

Times are nanoseconds of one monotonic clock (`time.perf_counter_ns`); a span is (start, end).
Sizes are bytes. Positions, layers and heads count from 0. Arrays are read-only numpy arrays; None
means not recorded. `==` skips them: compare traces with `same`.

L layers, H heads, D numbers a head, C = H D numbers a token, V ids in the vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from engine.request import Pick, Request, Sampling

Floats = NDArray[np.float32]
A = TypeVar("A", bound=NDArray[np.generic])
Span = tuple[int, int]
Phase = Literal["prefill", "decode"]
Reason = Literal["end of text", "max tokens", "context full", "stopped"]

N_TOP = 256  # ids whose probabilities every Sampled holds


@dataclass(frozen=True, slots=True)
class Token:
    """One entry of the vocabulary: its id and the bytes it stands for."""

    id: int
    piece: bytes


@dataclass(frozen=True, slots=True)
class Dimensions:
    """The five numbers that fix a GPT-2."""

    n_layer: int
    n_head: int
    n_embd: int
    n_positions: int
    n_vocab: int

    @property
    def head_size(self) -> int:
        """D: numbers a head works with."""
        return self.n_embd // self.n_head

    @property
    def n_params(self) -> int:
        """V C + P C + L (12 C^2 + 13 C) + 2 C; 124,439,808 for GPT-2 small."""
        c = self.n_embd
        layers = self.n_layer * (12 * c * c + 13 * c)
        return (self.n_vocab + self.n_positions) * c + layers + 2 * c

    def kv_token_bytes(self, item: int) -> int:
        """Bytes of K and V that one position takes: 2 x L x H x D x item.

        >>> Dimensions(12, 12, 768, 1024, 50257).kv_token_bytes(4)
        73728
        """
        return 2 * self.n_layer * self.n_embd * item


@dataclass(frozen=True, slots=True)
class Model:
    """Which weights a run used."""

    name: str  # id in resources/models.toml, or the folder's name
    title: str  # for people: "Decodescope 6x8"
    dimensions: Dimensions
    verified: bool  # the sha256 is one we know


@dataclass(frozen=True, slots=True)
class Machine:
    """Where a run happened."""

    name: str  # the processor's or the card's own name
    n_threads: int  # that decode uses, while no other program is in their way
    flops: float | None = None  # measured roof, FLOP a second
    bandwidth: float | None = None  # measured roof, bytes a second


@dataclass(frozen=True, slots=True)
class Memory:
    """The ledger after a pass; every figure is read from a real buffer or from the system."""

    kv_used: int  # K and V rows that hold a position
    kv_reserved: int  # the K and V buffers
    q_used: int  # Q history, kept for looking, not part of the KV cache
    q_reserved: int
    residual_used: int
    residual_reserved: int
    weights: int  # packed weights as they lie in memory
    process: int | None  # resident set of this process
    device: int | None = None  # in use on the accelerator, None on the CPU


@dataclass(frozen=True, slots=True)
class Work:
    """What a pass has to do, by formula; see `engine.meter.work`."""

    flops: int
    weight_bytes: int
    kv_bytes: int


@dataclass(frozen=True, slots=True)
class RunStarted:
    """R: the request and everything that decides its answer."""

    request: Request
    model: Model
    sha256: str  # of the weights file
    device: str  # "cpu", "cuda", "mps"
    dtype: str  # of the weights: "float32", "bfloat16", "float16", "int8"
    weight_bytes: int
    machine: Machine
    at_ns: int
    mask: str = "causal"
    interventions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Tokenized:
    """T: the prompt as tokens."""

    tokens: tuple[Token, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Forward:
    """F: one pass over `count` new positions, `first` being the first of them.

    The prefill's arrays hold the rows of the whole prompt, reused ones too; a decode has count 1.
    Residual row 2l is what layer l reads, 2l + 1 stands after its attention, 2L is what the last
    LayerNorm reads.
    """

    phase: Phase
    first: int
    count: int
    reused: int  # positions before `first` whose K and V were kept from an earlier run
    span: Span
    layer_spans: tuple[Span, ...]  # one a layer where the runner can tell, else empty
    waited_ns: int  # how long the generator stood suspended before this pass; never latency
    memory: Memory
    work: Work
    device_ns: int | None = None  # the pass by the device's own clock, where it has one
    # q, k, v: (L, H, rows, D); residual: (2L + 1, rows, C); logits: (V,) of the last position,
    # unshifted
    q: Floats | None = field(default=None, repr=False, compare=False)
    k: Floats | None = field(default=None, repr=False, compare=False)
    v: Floats | None = field(default=None, repr=False, compare=False)
    residual: Floats | None = field(default=None, repr=False, compare=False)
    logits: Floats | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Sampled:
    """S: one distribution became one token."""

    position: int  # the index the new token takes
    token: Token
    coin: float | None  # None: picked by hand
    sampling: Sampling  # in force for this token
    raw_prob: float  # of the chosen token, before the rule
    final_prob: float  # of the chosen token, after the rule; 0 if it was picked from the cut
    n_kept: int
    entropy: float  # bits, raw
    rank: int  # of the chosen token in the raw distribution, 0 = most probable
    span: Span
    top_ids: NDArray[np.int32] = field(repr=False, compare=False)  # (N_TOP,) by raw probability
    top_raw: NDArray[np.float64] = field(repr=False, compare=False)  # (N_TOP,)
    top_final: NDArray[np.float64] = field(repr=False, compare=False)  # (N_TOP,)


@dataclass(frozen=True, slots=True)
class RunFinished:
    """E: why it ended."""

    reason: Reason
    at_ns: int


@dataclass(frozen=True, slots=True)
class RunFailed:
    """E: what broke. `kind` names a sentence in errors.toml, `message` is that sentence."""

    kind: str
    message: str
    detail: str  # the traceback, for a report
    at_ns: int


Event = RunStarted | Tokenized | Forward | Sampled | RunFinished | RunFailed
Order = Sampling | Pick  # what `send` takes


def same(a: Event, b: Event) -> bool:
    """Whether two events are equal, arrays bit for bit."""
    if type(a) is not type(b) or a != b:
        return False
    return all(
        _same_array(getattr(a, f.name), getattr(b, f.name)) for f in fields(a) if not f.compare
    )


def _same_array(a: NDArray[np.generic] | None, b: NDArray[np.generic] | None) -> bool:
    if a is None or b is None:
        return a is b
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def frozen(array: A) -> A:
    """The same array, read-only."""
    array.flags.writeable = False
    return array
