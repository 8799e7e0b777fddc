"""Make a model folder of a run: what Decodescope and Hugging Face's GPT2LMHeadModel load.

    python packaging/embedded_model/export.py RUN --out FOLDER [--name NAME]

RUN is a folder that train.py wrote, finished or not. FOLDER gets model.safetensors (float16, with
GPT-2's whole vocabulary), config.json, trained_tokens.txt and the model card README.md, all of them
or none. It takes about three minutes on two cores.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "packaging")]

import torch  # noqa: E402 - the path comes first
from safetensors.torch import save  # noqa: E402
from torch import Tensor  # noqa: E402

from embedded_model import card, checkpoint, rest_rows, streams, trained_tokens  # noqa: E402
from embedded_model.network import Network  # noqa: E402
from embedded_model.refusal import Refusal  # noqa: E402
from embedded_model.settings import Model  # noqa: E402
from engine.errors import EngineError  # noqa: E402
from engine.meter import n_cores  # noqa: E402
from engine.tokenizer import END_OF_TEXT, N_VOCAB  # noqa: E402

WEIGHTS, CONFIG, CARD = "model.safetensors", "config.json", "README.md"
LITTLE = 0.001  # of the probability, which untrained rows should stay below
TABLE = "transformer.wte.weight"


def main(arguments: list[str] | None = None) -> int:
    """0: the folder is there; 2: refused."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("run", type=Path, metavar="RUN", help="folder that train.py wrote")
    parser.add_argument("--out", type=Path, metavar="FOLDER", required=True, help="a new folder")
    parser.add_argument("--name", help="what the card calls the model; else Decodescope LxH")
    options = parser.parse_args(arguments)
    try:
        export(options.run, options.out, name=options.name)
    except (Refusal, EngineError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def export(run: Path, out: Path, *, name: str | None = None) -> None:
    """Write a model folder, whole or not at all; stderr hears what is being done.

    Args:
        run: holds a checkpoint and its token streams.
        out: is not there yet, or is empty.
        name: the model's name for people.

    Raises:
        Refusal: `run` lacks something or does not fit together, `out` is in use or cannot be
            written, or a weight is no float16.
        EngineError: the tokenizer's ranks are missing.
    """
    _check_free(out)
    saved = checkpoint.read(run)
    read = streams.load(run / streams.NAME)
    if read.digest != saved.digest:
        raise Refusal(
            f"The token streams are not those of this run: put its own {streams.NAME} beside its "
            f"{checkpoint.NAME}. {run}"
        )
    network = _network(saved)
    weights = half(tensors(network))  # before the work: what cannot end well is refused at once
    _make_room(out)
    if saved.step < saved.settings.n_steps:
        _say(
            f"The run is unfinished, at step {saved.step:,} of {saved.settings.n_steps:,}: this is "
            "the model as it stands, and its card says so."
        )
    # No more threads than the run had: the same run gives the same bytes on the same machine.
    torch.set_num_threads(min(saved.n_threads, n_cores()))
    _say(f"Rows for {N_VOCAB - len(read.vocabulary):,} tokens that training never saw ...")
    filled = rest_rows.fill(network, read)
    if filled.training.mean >= LITTLE:
        _say(f"They get {card.percent(filled.training.mean)} of the probability: train longer.")
    raw = save(weights | half({TABLE: filled.table}), {"format": "pt"})
    size = saved.settings.model
    told = card.card(
        " ".join((name or f"Decodescope {size.n_layer}x{size.n_head}").split()),
        run=saved,
        streams=read,
        filled=filled,
        n_bytes=len(raw),
        sha256=hashlib.sha256(raw).hexdigest(),
    )
    _write(out, {WEIGHTS: raw, CONFIG: config(size).encode(), CARD: told.encode()}, read)
    _say(f"{out} is a model folder: evaluate.py --card puts figures into its card.")


def tensors(network: Network) -> dict[str, Tensor]:
    """GPT-2's tensors by Hugging Face's names: matrices lie (in, out), the table as trained."""
    found = {}
    for name, parameter in network.named_parameters():
        matrix = name.startswith("h.") and parameter.dim() == 2
        found[f"transformer.{name}"] = parameter.detach().t() if matrix else parameter.detach()
    return found


def half(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The same in float16.

    Raises:
        Refusal: a number is not finite there.
    """
    found = {name: t.to(torch.float16).contiguous() for name, t in tensors.items()}
    for name, t in found.items():
        if not t.isfinite().all():
            raise Refusal(
                f"{name} has a number that is not finite in float16: the run diverged; begin one "
                "with lower rates."
            )
    return found


def config(model: Model) -> str:
    """config.json, as transformers reads it."""
    settings: dict[str, Any] = {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "activation_function": "gelu_new",
        "attn_pdrop": 0.0,
        "resid_pdrop": 0.0,
        "embd_pdrop": 0.0,
        "bos_token_id": END_OF_TEXT,
        "eos_token_id": END_OF_TEXT,
        "initializer_range": 0.02,
        "layer_norm_epsilon": 1e-5,
        "n_ctx": model.n_positions,
        "n_embd": model.n_embd,
        "n_head": model.n_head,
        "n_layer": model.n_layer,
        "n_positions": model.n_positions,
        "vocab_size": N_VOCAB,
        "tie_word_embeddings": True,
        "torch_dtype": "float16",
    }
    return json.dumps(settings, indent=1) + "\n"


def _network(saved: checkpoint.Checkpoint) -> Network:
    network = Network(saved.settings.model)
    try:
        network.load_state_dict(dict(saved.weights))
    except RuntimeError as error:
        raise Refusal(
            f"{checkpoint.NAME} does not hold the network that its settings speak of: export from "
            "a run that train.py wrote."
        ) from error
    return network


def _check_free(out: Path) -> None:
    try:
        used = out.exists() and any(out.iterdir())  # iterdir refuses what is no folder
    except OSError as error:
        raise Refusal(f"--out must name a folder ({error.strerror}): {out}") from error
    if used:
        raise Refusal(f"--out names a folder with something in it: name a new one. {out}")


def _make_room(out: Path) -> None:
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Refusal(f"--out cannot be made ({error.strerror}): {out}") from error


def _write(out: Path, files: dict[str, bytes], read: streams.Streams) -> None:
    """Write all files beside the place where they belong, then move them there at once."""
    try:
        with tempfile.TemporaryDirectory(prefix=f".{out.name}-", dir=out.parent) as scratch:
            folder = Path(scratch) / out.name
            folder.mkdir()
            for name, content in files.items():
                (folder / name).write_bytes(content)
            trained_tokens.write(folder, read.vocabulary)
            if out.exists():
                out.rmdir()  # empty; Windows moves nothing onto a folder
            folder.rename(out)
    except OSError as error:
        raise Refusal(f"The model could not be written ({error.strerror}): {out}") from error


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
