"""The options of a run on a command line, shared by the engine and the window."""

from __future__ import annotations

import argparse
import sys
import tomllib
from typing import NoReturn

from engine import resources
from engine.errors import EngineError
from engine.request import Request, Sampling
from engine.untrusted import quoted


class Parser(argparse.ArgumentParser):
    """An argument parser that refuses in one sentence."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and where help is; exit code 2."""
        self.exit(2, f"{self.prog}: {message}. See {self.prog} --help.\n")


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add model, device and sampling options; numbers are checked by Request, in its words."""
    defaults = Request("x")
    add = parser.add_argument
    add("--model", default="embedded", help="embedded, a known name (gpt2) or a folder")
    add("--device", default="auto", help="auto, cpu, cuda or mps")
    add("--dtype", default="auto", help="auto, float32, bfloat16, float16 or int8")
    add("--max-tokens", default=str(defaults.max_tokens), metavar="N", help="tokens to write")
    add("--temperature", default=str(defaults.sampling.temperature), metavar="T")
    add("--top-k", default=str(defaults.sampling.top_k), metavar="K", help="0 = off")
    add("--top-p", default=str(defaults.sampling.top_p), metavar="P", help="1 = off")
    add("--seed", default=str(defaults.seed), metavar="S")
    add("--special", action="store_true", help="read <|endoftext|> as one token")


def sampling(options: argparse.Namespace) -> Sampling:
    """The sampling that the options say.

    Raises:
        EngineError: kind "temperature", "top_k" or "top_p".
    """
    return Sampling(
        _real(options.temperature, "temperature"),
        _whole(options.top_k, "top_k"),
        _real(options.top_p, "top_p"),
    )


def request(options: argparse.Namespace, prompt: str | None) -> Request:
    """The request that the options say; no prompt means the first example, "-" standard input.

    Raises:
        EngineError: what Request and Sampling say.
    """
    return Request(
        read_prompt(prompt),
        max_tokens=_whole(options.max_tokens, "max_tokens"),
        sampling=sampling(options),
        seed=_whole(options.seed, "seed"),
        special=options.special,
    )


def read_prompt(prompt: str | None) -> str:
    """The prompt's text, byte for byte as it was given."""
    if prompt is None:
        return default_prompt()
    if prompt == "-":
        if sys.stdin is None:  # closed by whoever started us: there is nothing to read
            return ""
        return sys.stdin.buffer.read().decode(errors="surrogateescape")
    return prompt


def default_prompt() -> str:
    """The prompt of a first start."""
    with resources.path("prompts.toml").open("rb") as file:
        return str(tomllib.load(file)["prompt"][0]["prompt"])


def _real(words: str, kind: str) -> float:
    try:
        return float(words)
    except ValueError:
        raise EngineError(kind, found=quoted(words)) from None


def _whole(words: str, kind: str) -> int:
    try:
        return int(words)
    except ValueError:
        raise EngineError(kind, found=quoted(words)) from None
