"""Every engine of the bench behind one face: prepare its file, load it, write greedily by ids."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

ITEM = {"float32": 4, "float16": 2, "bfloat16": 2, "int8": 1}  # bytes a weight takes at least
END_OF_TEXT = 50_256


@dataclass(frozen=True, slots=True)
class Answer:
    """What an engine wrote, and how long it took."""

    ids: list[int]
    first_s: float  # from the call to the first id
    rest_s: float  # from the first id to the last


class Peer(ABC):
    """A model in some engine, on the CPU. The constructor is what "load" means in the table."""

    imports: ClassVar[tuple[str, ...]]  # before the clock of loading starts
    packages: ClassVar[tuple[str, ...]]  # what must be installed

    @classmethod
    def prepare(cls, folder: Path, place: Path, dtype: str, n_threads: int) -> Path:
        """Write the model as this engine reads it, under `place`; say where it is."""
        return folder

    @abstractmethod
    def __init__(self, path: Path, dtype: str, n_threads: int) -> None:
        """Load."""

    @abstractmethod
    def write(self, prompt: Prompt, n_tokens: int, *, recording: bool = True) -> Answer:
        """Write so many tokens after a prompt, with a KV cache, always the likeliest."""

    def item_weight(self, dtype: str) -> int:
        """Bytes that a weight takes."""
        return ITEM[dtype]


@dataclass(frozen=True, slots=True)
class Prompt:
    """The same prompt as text and as ids."""

    text: str
    ids: list[int]


class Stopwatch:
    """Stamps the ids as they come."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self._start = self._first = self._last = time.perf_counter()

    def take(self, id: int) -> None:
        self._last = time.perf_counter()
        if not self.ids:
            self._first = self._last
        self.ids.append(int(id))

    def answer(self) -> Answer:
        return Answer(self.ids, self._first - self._start, self._last - self._first)


class Ours(Peer):
    """`Engine.generate` with all that a run does: tokenizing, the float64 rule, every event made.

    Recording on keeps q, k, v, the residual rows and the logits of every position in a trace.
    """

    imports = ("engine.generate", "engine.trace")
    packages = ("torch",)

    @classmethod
    def prepare(cls, folder: Path, place: Path, dtype: str, n_threads: int) -> Path:
        """Load once: which way to multiply is fastest here is timed at first, and then kept."""
        cls(folder, dtype, n_threads)
        return folder

    def __init__(self, path: Path, dtype: str, n_threads: int) -> None:
        generate = import_module("engine.generate")
        self._engine = generate.Engine.load(path, "cpu", dtype, n_threads=n_threads)

    def write(self, prompt: Prompt, n_tokens: int, *, recording: bool = True) -> Answer:
        # imported late, as only this engine's process needs them
        from engine.request import Capture, Request, Sampling
        from engine.trace import Trace

        request = Request(
            prompt.text,
            max_tokens=n_tokens,
            sampling=Sampling(temperature=0),
            capture=Capture(attention=recording, residual=recording, logits=recording),
        )
        trace, watch = Trace(), Stopwatch()
        for event in self._engine.generate(request):
            trace.append(event)
            if len(trace.samples) > len(watch.ids):
                watch.take(trace.samples[-1].token.id)
        assert [token.id for token in trace.tokens[: trace.n_prompt]] == prompt.ids
        return watch.answer()

    def item_weight(self, dtype: str) -> int:
        """As packed: 2 where float16 weights are widened as they are read."""
        return int(self._engine._runner.item_weight)


class HuggingFace(Peer):
    """GPT2LMHeadModel and argmax, without the costs of its generate()."""

    imports = ("torch", "transformers.models.gpt2.modeling_gpt2")
    packages = ("transformers", "torch")
    attention: ClassVar[str]

    def __init__(self, path: Path, dtype: str, n_threads: int) -> None:
        torch, transformers = import_module("torch"), import_module("transformers")
        if dtype == "int8":
            raise ValueError("its GPT-2 has no int8")
        if dtype == "float16" and not _multiplies_half(torch):
            raise ValueError("torch multiplies no float16 on this processor but very slowly")
        torch.set_num_threads(n_threads)
        self._torch = torch
        self._model = transformers.GPT2LMHeadModel.from_pretrained(
            path, attn_implementation=self.attention, dtype=getattr(torch, dtype)
        ).eval()

    def write(self, prompt: Prompt, n_tokens: int, *, recording: bool = True) -> Answer:
        torch, watch = self._torch, Stopwatch()
        ids, past = prompt.ids, None
        with torch.inference_mode():
            for _ in range(n_tokens):
                out = self._model(
                    input_ids=torch.tensor([ids]),
                    past_key_values=past,
                    use_cache=True,
                    logits_to_keep=1,
                )
                past = out.past_key_values
                watch.take(out.logits[0, -1].float().numpy().argmax())
                ids = watch.ids[-1:]
        return watch.answer()


class HuggingFaceEager(HuggingFace):
    attention = "eager"


class HuggingFaceSdpa(HuggingFace):
    attention = "sdpa"


class CTranslate2(Peer):
    """`Generator.generate_batch` with beam 1; its callback stamps each token."""

    imports = ("ctranslate2",)
    packages = ("ctranslate2",)

    @classmethod
    def prepare(cls, folder: Path, place: Path, dtype: str, n_threads: int) -> Path:
        """Its own layout, by its own specification classes, in float32: loading quantises."""
        from engine import weights  # late, so that what is measured does not hold them
        from engine.checkpoint import float32

        checkpoint = weights.read(folder)
        tensors = {
            name: float32(tensor, checkpoint.dtypes[name])
            for name, tensor in checkpoint.tensors.items()
        }
        size, path = checkpoint.config.dimensions, place / "ctranslate2"
        spec = _specification(tensors, size.n_layer, size.n_head)
        spec.config.layer_norm_epsilon = checkpoint.config.layer_norm_epsilon
        spec.register_vocabulary([str(id) for id in range(size.n_vocab)])
        spec.validate()
        spec.optimize(quantization=None)
        path.mkdir(exist_ok=True)
        spec.save(str(path))
        return path

    def __init__(self, path: Path, dtype: str, n_threads: int) -> None:
        library = import_module("ctranslate2")
        self._generator = library.Generator(
            str(path), device="cpu", compute_type=dtype, inter_threads=1, intra_threads=n_threads
        )

    def write(self, prompt: Prompt, n_tokens: int, *, recording: bool = True) -> Answer:
        watch = Stopwatch()
        self._generator.generate_batch(
            [[str(id) for id in prompt.ids]],
            max_length=n_tokens,
            min_length=n_tokens,
            sampling_topk=1,
            include_prompt_in_result=False,  # the prompt is read at once
            callback=lambda step: watch.take(step.token_id),
        )
        return watch.answer()


class LlamaCpp(Peer):
    """llama.cpp through llama-cpp-python: flash attention, the faster way; K and V in float16.

    Written from the source of llama-cpp-python 0.3.36 and not yet run: no machine of ours had it.
    The GGUF file was read back by the package gguf 0.19, bit for bit as it would write it.
    """

    imports = ("llama_cpp",)
    packages = ("llama_cpp",)

    @classmethod
    def prepare(cls, folder: Path, place: Path, dtype: str, n_threads: int) -> Path:
        """One GGUF file."""
        from bench import gguf_file  # late, so that what is measured does not hold them
        from engine import weights

        path = place / f"{dtype}.gguf"
        gguf_file.write(path, weights.read(folder), dtype)
        return path

    def __init__(self, path: Path, dtype: str, n_threads: int) -> None:
        library = import_module("llama_cpp")
        self._llama: Any = library.Llama(
            str(path),
            n_ctx=0,  # as many as the model has
            n_threads=n_threads,
            n_threads_batch=n_threads,
            flash_attn=True,
            verbose=False,
        )

    def write(self, prompt: Prompt, n_tokens: int, *, recording: bool = True) -> Answer:
        self._llama.reset()  # or it would keep the prompt of the run before
        watch = Stopwatch()
        for id in self._llama.generate(prompt.ids, temp=0.0, repeat_penalty=1.0):
            watch.take(id)
            if len(watch.ids) == n_tokens:
                break
        return watch.answer()


PEERS: dict[str, type[Peer]] = {
    "ours": Ours,
    "hf-eager": HuggingFaceEager,
    "hf-sdpa": HuggingFaceSdpa,
    "ctranslate2": CTranslate2,
    "llama.cpp": LlamaCpp,
}


def _multiplies_half(torch: Any) -> bool:  # noqa: ANN401
    """Whether oneDNN has float16 arithmetic here; older versions of torch cannot tell."""
    asked = getattr(torch.ops.mkldnn, "_is_mkldnn_fp16_supported", None)
    return asked is not None and bool(asked())


def _specification(tensors: dict[str, Floats], n_layer: int, n_head: int) -> Any:  # noqa: ANN401
    """GPT-2 in CTranslate2's words; its matrices lie (out, in)."""
    specs = import_module("ctranslate2.specs")
    common = import_module("ctranslate2.specs.common_spec")
    spec = specs.TransformerDecoderModelSpec.from_config(
        n_layer, n_head, pre_norm=True, activation=common.Activation.GELUTanh
    )

    def norm(place: Any, name: str) -> None:  # noqa: ANN401
        place.gamma, place.beta = tensors[f"{name}.weight"], tensors[f"{name}.bias"]

    def linear(place: Any, name: str) -> None:  # noqa: ANN401
        place.weight = np.ascontiguousarray(tensors[f"{name}.weight"].T)  # (out, in)
        place.bias = tensors[f"{name}.bias"]

    decoder = spec.decoder
    decoder.scale_embeddings = False
    decoder.embeddings.weight = tensors["wte.weight"]
    decoder.position_encodings.encodings = tensors["wpe.weight"]
    decoder.projection.weight = tensors.get("lm_head.weight", tensors["wte.weight"])
    norm(decoder.layer_norm, "ln_f")
    for n, layer in enumerate(decoder.layer):
        norm(layer.self_attention.layer_norm, f"h.{n}.ln_1")
        linear(layer.self_attention.linear[0], f"h.{n}.attn.c_attn")
        linear(layer.self_attention.linear[1], f"h.{n}.attn.c_proj")
        norm(layer.ffn.layer_norm, f"h.{n}.ln_2")
        linear(layer.ffn.linear_0, f"h.{n}.mlp.c_fc")
        linear(layer.ffn.linear_1, f"h.{n}.mlp.c_proj")
    end = str(END_OF_TEXT)
    spec.config.unk_token = spec.config.bos_token = spec.config.eos_token = end
    return spec
