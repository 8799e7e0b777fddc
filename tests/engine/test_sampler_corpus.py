"""The sampling rule against 42 settings whose answers were computed elsewhere."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import sampling
from engine.errors import EngineError
from engine.request import Sampling

CASES = json.loads((Path(__file__).parents[1] / "corpora" / "sampler.json").read_text())["cases"]
KINDS = {"nan": "logits_not_finite", "inf": "logits_not_finite"}


def distribution(case: dict[str, Any]) -> sampling.Distribution:
    setting = Sampling(case["temperature"], case["top_k"], case["top_p"])
    return sampling.distribution(np.array(case["logits"], float), setting)


@pytest.mark.parametrize("case", [c for c in CASES if "error" not in c], ids=lambda c: c["id"])
def test_a_setting_gives_its_probabilities_and_keeps_its_ids(case: dict[str, Any]) -> None:
    d = distribution(case)
    assert d.probs == pytest.approx(case["probs"], abs=1e-9)  # the corpus has 12 digits
    if "boundary" not in case:
        assert sorted(d.kept.tolist()) == case["kept"]


@pytest.mark.parametrize("case", [c for c in CASES if "error" in c], ids=lambda c: c["id"])
def test_a_setting_or_logits_that_mean_nothing_are_refused(case: dict[str, Any]) -> None:
    with pytest.raises(EngineError) as error:
        distribution(case)
    assert error.value.kind == KINDS.get(case["error"], case["error"])


def test_all_settings_are_there() -> None:
    assert len(CASES) == 42
