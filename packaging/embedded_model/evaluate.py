"""Judge an exported model by the program's own engine: losses, copying, heads, samples.

    python packaging/embedded_model/evaluate.py FOLDER [--corpus FOLDER] [--json FILE] [--card]

FOLDER holds config.json and model.safetensors. The held-out text that travels with the recipe is
read, or that of a corpus. Prints a table and writes figures.json, in a minute or two on two cores.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "packaging")]

import numpy as np  # noqa: E402 - the path comes first

from embedded_model import corpus, figures, measures, settings, stories, streams  # noqa: E402
from embedded_model.figures import Figures  # noqa: E402
from embedded_model.measures import N_FREQUENT, N_SEQUENCES, SEQUENCE, Ids  # noqa: E402
from embedded_model.refusal import Refusal  # noqa: E402
from embedded_model.subject import Subject  # noqa: E402
from engine import tokenizer  # noqa: E402
from engine.errors import EngineError  # noqa: E402
from engine.events import RunFailed, RunFinished, Sampled  # noqa: E402
from engine.generate import Engine  # noqa: E402
from engine.request import Capture, Request, Sampling  # noqa: E402
from engine.tokenizer import END_OF_TEXT  # noqa: E402

PROMPTS = (
    "Michael Jordan played the sport of",
    "Once upon a time, there was a little girl named Lily.",
    "The capital of Japan is",
    "When Mary and John went to the store, John gave a drink to",
    "The cat sat on the mat. The cat",
    "A language model reads text and",
)
SAMPLING, SAMPLE_SEED, SAMPLE_TOKENS = Sampling(temperature=0.8, top_k=40, top_p=0.95), 1, 60

Texts = dict[str, list[str]]  # by "A", "B", "C" or "stories"
Say = Callable[[str], None]


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line asks; the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="a model folder: config.json, model.safetensors")
    parser.add_argument("--corpus", type=Path, metavar="FOLDER", help="judge by its held-out texts")
    parser.add_argument("--json", type=Path, metavar="FILE", help="instead of FOLDER/figures.json")
    parser.add_argument("--card", action="store_true", help="put the table into FOLDER/README.md")
    options = parser.parse_args(arguments)
    card: Path | None = options.folder / "README.md" if options.card else None
    try:
        if card:
            figures.into_card(_read(card), "")  # better refused before the work than after it
        subject = Subject(options.folder)
        texts = held_out_texts(options.corpus)
        found = evaluate(subject, texts, say=lambda line: print(line, file=sys.stderr, flush=True))
        found["held_out"] = "corpus" if options.corpus else "shipped"
        print(figures.block(found))
        _write(options.json or options.folder / "figures.json", _dumped(found))
        if card:
            _write(card, figures.into_card(_read(card), figures.block(found)))
    except (Refusal, EngineError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def held_out_texts(folder: Path | None) -> Texts:
    """What no training saw: books by their tier, and 300 stories.

    Args:
        folder: a corpus, split as for training; None: the books that travel with the recipe.

    Raises:
        Refusal: what reading a corpus or the grammar says.
    """
    documents = corpus.split(corpus.read_corpus(folder))[1] if folder else corpus.held_out()
    texts: Texts = {}
    for tier in corpus.TIERS:
        if found := [document.text for document in documents if document.tier == tier]:
            texts[tier] = found
    seeds = settings.read().corpus
    held_out = stories.stories(seeds.n_held_out_stories, seed=seeds.held_out_seed)
    return texts | {"stories": list(held_out)}


def stream(texts: Iterable[str]) -> Ids:
    """(n,) the tokens of each text, followed by <|endoftext|>."""
    return streams.tokenized(texts)[0].astype(np.intp)


def evaluate(subject: Subject, texts: Texts, *, say: Say) -> Figures:
    """Every figure of a model, as plain numbers.

    Args:
        subject: the model.
        texts: as `held_out_texts` gives them.
        say: told what is being done, a line at a time.

    Raises:
        Refusal: the texts are too short to measure anything by.
    """
    tokens = {name: stream(found) for name, found in texts.items()}
    natural = _sequences(tokens)
    frequent = np.arange(N_FREQUENT) if subject.trained is None else subject.trained
    repeated = measures.repeats(frequent)
    say("copying")
    copying = measures.copying(subject, repeated)
    say("heads")
    scores = measures.head_scores(subject, natural, repeated)
    losses = {}
    for name, ids in tokens.items():
        if len(ids) < subject.n_positions:
            say(f"{name}: left out, {len(ids):,} tokens are less than one window")
            continue
        say(f"{name}: {len(ids):,} tokens")
        loss = measures.loss(subject, ids, untrained=subject.untrained)
        losses[name] = figures.of_loss(loss, n_documents=len(texts[name]))
    say("samples")
    return {
        "model": _model(subject),
        "losses": losses,
        "copying": figures.of_copying(copying, by_frequency=subject.trained is not None),
        "heads": figures.of_heads(scores),
        "sampling": {
            "temperature": SAMPLING.temperature,
            "top_k": SAMPLING.top_k,
            "top_p": SAMPLING.top_p,
            "seed": SAMPLE_SEED,
            "max_tokens": SAMPLE_TOKENS,
        },
        "samples": [_sample(subject.engine, prompt) for prompt in PROMPTS],
    }


def _sequences(streams: dict[str, Ids]) -> Ids:
    """(16, 128) the first tokens of the plainest books that are long enough."""
    wanted = N_SEQUENCES * SEQUENCE
    for name, ids in streams.items():
        if name != "stories" and len(ids) >= wanted:
            return ids[:wanted].reshape(N_SEQUENCES, SEQUENCE)
    longest = max((len(ids) for name, ids in streams.items() if name != "stories"), default=0)
    raise Refusal(
        f"No tier of the held-out books has {wanted:,} tokens, the longest has {longest:,}: add "
        "texts to the corpus, or leave --corpus out to judge by the texts of the recipe."
    )


def _model(subject: Subject) -> Figures:
    size = subject.checkpoint.config.dimensions
    return {
        "sha256": subject.checkpoint.sha256,
        "n_layer": size.n_layer,
        "n_head": size.n_head,
        "n_embd": size.n_embd,
        "n_positions": size.n_positions,
        "n_params": size.n_params,
        "n_trained_rows": size.n_vocab if subject.trained is None else len(subject.trained),
    }


def _sample(engine: Engine, prompt: str) -> Figures:
    """What the model writes after a prompt, and why it stopped."""
    request = Request(
        prompt,
        max_tokens=SAMPLE_TOKENS,
        sampling=SAMPLING,
        seed=SAMPLE_SEED,
        capture=Capture(attention=False, residual=False, logits=False),
    )
    ids: list[int] = []
    end = ""
    for event in engine.generate(request):
        if isinstance(event, Sampled) and event.token.id != END_OF_TEXT:
            ids.append(event.token.id)
        elif isinstance(event, RunFinished):
            end = event.reason
        elif isinstance(event, RunFailed):
            raise Refusal(event.message)
    return {"prompt": prompt, "text": tokenizer.load().decode(ids), "end": end}


def _dumped(found: Figures) -> str:
    return json.dumps(found, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Refusal(
            f"{path.name} cannot be read ({type(error).__name__}); a model card was looked for: "
            f"leave --card out, or write one. {path}"
        ) from error


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise Refusal(
            f"{path.name} cannot be written ({error.strerror}): name a place that can. {path}"
        ) from error


if __name__ == "__main__":
    raise SystemExit(main())
