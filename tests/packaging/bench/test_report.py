"""The printed result of a small race, whole."""

from dataclasses import replace

from bench import report
from bench.race import Race
from bench.table import BARE, OURS, Loaded, Run

from engine.events import Dimensions
from engine.floors import Limits

# GPT-2 small. A step at 16 reads 494,613,504 bytes of weights and 73,728 (17 + 1) of K and V: 5 ms.
# The prompt takes 2 16 84,934,656 + 77,194,752 + 36,864 136 = 2,800,117,248 flops: 8 ms.
SIZE = Dimensions(n_layer=12, n_head=12, n_embd=768, n_positions=1024, n_vocab=50257)
BYTES_S, FLOPS_S = 495_940_608 / 0.005, 2_800_117_248 / 0.008


def race(foreign: float | None) -> Race:
    """One round of one prompt, two tokens each: ours, ours without recording, and a peer."""
    times = {OURS: (0.010, 0.010), BARE: (0.008, 0.009), "hf-sdpa": (0.030, 0.025)}
    made = Race(SIZE, [16], n_threads=1, n_tokens=2)
    for engine, (first, rest) in times.items():
        ids = (5, 6) if engine != "hf-sdpa" else (5, 7)
        made.runs.append(Run(engine, "float32", 16, 0, ids, first, rest, foreign))
        peak = None if engine == BARE else 200_000_000 if engine == OURS else 400_000_000
        made.loaded[engine, "float32"] = Loaded(0.5, 4, peak)
    first = Limits("cpu", "float32", 1, BYTES_S, 0.9 * FLOPS_S, "onednn", 2_000.0, None)
    made.limits["float32"] = [first, replace(first, bandwidth=0.8 * BYTES_S, flops=FLOPS_S)]
    made.notes.append("llama.cpp float32 left out: llama_cpp is not installed")
    return made


QUIET = """\
limits of this machine, the best of all rounds: 99.2 GB/s read, 350 GFLOP/s float32

engine               dtype    prompt  TTFT ms  tok/s  load s  peak MB  \
prefill of floor  decode of floor  ids as ours
ours                 float32      16     10.0  100.0    0.50      200              \
80 %             50 %            -
ours, recording off  float32      16      8.0  111.1    0.50        -             \
100 %             56 %       2 of 2
hf-sdpa              float32      16     30.0   40.0    0.50      400              \
27 %             20 %       1 of 2

ours over theirs, more than 1 is ours faster (peak: ours over theirs in bytes)
against  dtype    prompt  decode  first token  peak
hf-sdpa  float32      16    2.50         3.00  0.50

recording on over off
dtype    prompt  decode  first token
float32  16        0.90         0.80

others used 2 % of the processors in the median run and 2 % at most; 0 of 3 runs were disturbed \
(more than 5 %) and count only where no undisturbed one is left
llama.cpp float32 left out: llama_cpp is not installed"""


def test_a_quiet_race() -> None:
    assert "\n".join(report.lines(race(0.02))) == QUIET


def test_a_disturbed_race_marks_its_ratios() -> None:
    text = "\n".join(report.lines(race(0.5)))
    assert "hf-sdpa  float32      16   2.50?        3.00?  0.50" in text
    assert "3 of 3 runs were disturbed" in text
    assert "? = no round was undisturbed on both sides" in text


def test_where_nobody_can_tell_it_says_so() -> None:
    text = "\n".join(report.lines(race(None)))
    assert "not known on this system" in text
    assert "2.50?" not in text
