"""A run small enough to be trained in a second: two layers of 16, a hundred rows."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from embedded_model.settings import Settings, read, settled
from embedded_model.streams import Stream, Streams

N_ROWS = 100


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Training sets the threads of this thread; tests have one."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def small() -> Settings:
    """8 steps of 64 tokens, measured every 4; the context goes from 16 to 32 after the half."""
    plain = read().plain()
    plain["model"] = {
        "n_layer": 2,
        "n_head": 2,
        "n_embd": 16,
        "n_positions": 32,
        "n_rows": N_ROWS,
    }
    plain["start"] |= {"look_back_heads": 1}
    plain["run"] = {"tokens": 512, "batch_tokens": 64, "seed": 3, "measure_every": 4}
    plain["corpus"] |= {"n_stories": 3, "n_drills": 3, "n_held_out_stories": 2}
    plain["stage"] = [
        {"until": 0.5, "context": 16, "shares": {"A": 0.5, "stories": 0.3, "copying": 0.2}},
        {"until": 1.0, "context": 32, "shares": {"A": 0.5, "stories": 0.3, "copying": 0.2}},
    ]
    return settled(plain, source="test")


@pytest.fixture
def streams() -> Streams:
    """Rows drawn from a fixed seed; place 100 stands for tokens without a row."""
    random = np.random.default_rng(7)

    def stream(n: int) -> Stream:
        rows = random.integers(0, N_ROWS + 1, n).astype(np.uint16)
        return Stream(rows, np.arange(0, n, 50))

    vocabulary = np.arange(200, 200 + N_ROWS)
    training = {"A": stream(400), "stories": stream(300)}
    return Streams(vocabulary, training, {"A": stream(200), "stories": stream(100)})
