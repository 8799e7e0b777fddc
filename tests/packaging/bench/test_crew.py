"""Who used the processor, from two looks at the clocks of the system."""

import os
from pathlib import Path

import pytest
from bench import crew
from bench.crew import Lost, Usage


def test_what_neither_we_nor_the_idle_loop_used_was_somebody_else() -> None:
    """100 ticks a second on 2 processors for 2 s are 400; 300 were used, 100 of them by us."""
    hertz = os.sysconf("SC_CLK_TCK")
    before, after = Usage(1000, 50, 10.0), Usage(1000 + 3 * hertz, 50 + hertz, 12.0)
    assert crew.foreign_share(before, after, 2) == 0.5
    assert crew.foreign_share(before, Usage(1000, 60, 12.0), 2) == 0.0
    assert crew.foreign_share(None, after, 2) is None


def test_a_look_counts_this_process() -> None:
    if (found := crew.usage([os.getpid()])) is not None:
        assert 0 < found.ours <= found.everybody


def test_what_is_not_installed_is_left_out_with_a_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crew, "find_spec", lambda _: None)
    with pytest.raises(Lost, match=r"^ctranslate2 is not installed$"):
        crew.start("ctranslate2", "float32", tmp_path, tmp_path, n_threads=1)
