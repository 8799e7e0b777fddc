"""What is measured on the way, on a network whose answers are known."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from embedded_model.monitor import measure
from embedded_model.network import begin
from embedded_model.settings import Settings
from embedded_model.streams import Stream, Streams


def test_a_network_that_knows_nothing_loses_the_logarithm_of_its_rows(
    small: Settings, streams: Streams
) -> None:
    network = begin(small.model, replace(small.start, position_scale=0.0), seed=0)
    with torch.no_grad():
        network.wte.weight.zero_()
    found = measure(network, streams)
    assert set(found) == {"A", "stories", "copy_first", "copy_second"}
    for loss in found.values():
        assert loss == pytest.approx(math.log(101), rel=1e-5)


def test_tokens_without_a_row_and_texts_without_a_window_are_left_out(
    small: Settings, streams: Streams
) -> None:
    """32 positions: a window is 33 tokens. B is one short of it; in A only place 3 is scored."""
    rows = np.full(66, 100, np.uint16)
    rows[10] = 3
    held_out = {
        "A": Stream(rows, np.zeros(1, np.int64)),
        "B": Stream(rows[:32], np.zeros(1, np.int64)),
    }
    network = begin(small.model, small.start, seed=0)
    with torch.no_grad():
        network.wte.weight.zero_()
    found = measure(network, Streams(streams.vocabulary, {}, held_out))
    assert "B" not in found
    assert found["A"] == pytest.approx(math.log(101), rel=1e-5)
