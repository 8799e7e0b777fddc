"""What a run is asked for: prompt, length, sampling, seed, and what to record."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from numbers import Integral, Real

from engine.errors import EngineError
from engine.untrusted import quoted

MAX_PROMPT_CHARACTERS = 100_000  # a tokenizer may panic, and a widget freeze, far beyond this


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a distribution becomes one token: temperature, then top-k, then top-p.

    Args:
        temperature: 0 (greedy) or more; divides the logits.
        top_k: how many ids stay, 0 = all.
        top_p: the mass the smallest kept set must reach, 1 = all.

    Raises:
        EngineError: kind "temperature", "top_k" or "top_p".
    """

    temperature: float = 0.8
    top_k: int = 40
    top_p: float = 0.95

    def __post_init__(self) -> None:
        temperature = _real(self.temperature, "temperature")
        top_p = _real(self.top_p, "top_p")
        if not 0 <= temperature < math.inf:
            raise EngineError("temperature", found=quoted(self.temperature))
        if not 0 <= top_p <= 1:
            raise EngineError("top_p", found=quoted(self.top_p))
        top_k = _whole(self.top_k, "top_k", least=0)
        object.__setattr__(self, "temperature", temperature)
        object.__setattr__(self, "top_k", top_k)
        object.__setattr__(self, "top_p", top_p)


@dataclass(frozen=True, slots=True)
class Pick:
    """An order to a running job: the next token is this id, not a draw."""

    token: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "token", _whole(self.token, "token", least=0))


@dataclass(frozen=True, slots=True)
class Capture:
    """Which arrays a run records. What is not recorded cannot be looked at later."""

    attention: bool = True  # q, k and v of every layer: any head's map
    residual: bool = True  # the residual stream before, between and after the layers
    logits: bool = True  # all logits of every step's last position

    def __post_init__(self) -> None:
        for name in ("attention", "residual", "logits"):
            if not isinstance(getattr(self, name), bool):
                raise EngineError("capture", name=name, found=quoted(getattr(self, name)))

    def bytes_for(
        self, n_tokens: int, *, n_steps: int, n_layer: int, n_embd: int, n_vocab: int
    ) -> int:
        """Bytes that recording takes, all in float32.

        q, k, v: 3 x n_layer x n_embd numbers a token; residual: (2 n_layer + 1) x n_embd a token;
        logits: n_vocab a step.

        >>> Capture().bytes_for(100, n_steps=10, n_layer=12, n_embd=768, n_vocab=50257)
        20749480
        """
        per_token = 3 * n_layer * n_embd * self.attention
        per_token += (2 * n_layer + 1) * n_embd * self.residual
        return 4 * (n_tokens * per_token + n_steps * n_vocab * self.logits)


@dataclass(frozen=True, slots=True)
class Request:
    """One run, complete: the same request on the same weights gives the same tokens.

    Args:
        prompt: the text as it was typed or pasted, not empty.
        max_tokens: how many tokens to write at most, 1 or more.
        seed: 0 to 2**64 - 1; with a position it names a coin.
        capture: what to record.
        special: read <|endoftext|> in the prompt as the token 50256, not as text.
        reuse: keep the common prefix of what the model read last, and read only the rest.

    Raises:
        EngineError: kind "prompt_empty", "prompt_not_text", "prompt_too_long", "max_tokens",
            "seed" or "wrong_type".
    """

    prompt: str
    max_tokens: int = 48
    sampling: Sampling = field(default_factory=Sampling)
    seed: int = 1
    capture: Capture = field(default_factory=Capture)
    special: bool = False
    reuse: bool = False

    def __post_init__(self) -> None:
        check_prompt(self.prompt)
        object.__setattr__(self, "max_tokens", _whole(self.max_tokens, "max_tokens", least=1))
        seed = _whole(self.seed, "seed", least=0)
        if seed >= 2**64:
            raise EngineError("seed", found=quoted(self.seed))
        object.__setattr__(self, "seed", seed)
        for name, kind in (("sampling", Sampling), ("capture", Capture)):
            if not isinstance(getattr(self, name), kind):
                raise EngineError("wrong_type", name=name, found=type(getattr(self, name)).__name__)
        for name in ("special", "reuse"):
            if not isinstance(getattr(self, name), bool):
                raise EngineError("wrong_type", name=name, found=type(getattr(self, name)).__name__)


def check_prompt(prompt: object) -> None:
    """Refuse what no model can read: nothing, not text, or far too much.

    Raises:
        EngineError: kind "wrong_type", "prompt_empty", "prompt_not_text" or "prompt_too_long".
    """
    if not isinstance(prompt, str):
        raise EngineError("wrong_type", name="prompt", found=type(prompt).__name__)
    if not prompt:
        raise EngineError("prompt_empty")
    if len(prompt) > MAX_PROMPT_CHARACTERS:
        raise EngineError("prompt_too_long", found=len(prompt), limit=MAX_PROMPT_CHARACTERS)
    try:
        prompt.encode()
    except UnicodeEncodeError as error:
        raise EngineError("prompt_not_text", at=error.start) from error


def is_index(value: object, n: int) -> bool:
    """Whether it is a whole number from 0 to n - 1, and no bool."""
    return not isinstance(value, bool) and isinstance(value, Integral) and 0 <= int(value) < n


def _whole(value: object, kind: str, *, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise EngineError(kind, found=quoted(value))
    return int(value)


def _real(value: object, kind: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise EngineError(kind, found=quoted(value))
    try:
        return float(value)
    except OverflowError as error:  # a whole number beyond all floats
        raise EngineError(kind, found=quoted(value)) from error
