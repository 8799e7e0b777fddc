"""trained_tokens.txt: what is written is read, and what is no such file is refused."""

from pathlib import Path

import numpy as np
import pytest
from embedded_model import trained_tokens
from embedded_model.refusal import Refusal

from engine import resources
from engine.tokenizer import END_OF_TEXT


def test_what_is_written_is_read_in_its_order_16_a_line(tmp_path: Path) -> None:
    ids = np.arange(50_256, 50_256 - 20, -1)
    trained_tokens.write(tmp_path, ids)
    lines = (tmp_path / "trained_tokens.txt").read_text().splitlines()
    assert [len(line.split()) for line in lines] == [16, 4]
    found = trained_tokens.read(tmp_path)
    assert found is not None
    assert found.tolist() == ids.tolist()


def test_a_folder_without_the_file_does_not_say(tmp_path: Path) -> None:
    assert trained_tokens.read(tmp_path) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1 2 cat 3", "'cat'"),
        ("1 2\n50257", "'50257'"),
        ("1 -2", "'-2'"),
        ("1 2 1", "'1'"),
        ("9" * 5_000, "'" + "9" * 20 + "'"),
        (" \n", "is empty"),
        ("1 ²", "cannot be read as text"),
    ],
    ids=["a word", "beyond the vocabulary", "a sign", "twice", "endless", "empty", "not ASCII"],
)
def test_what_is_no_list_of_ids_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "trained_tokens.txt").write_text(text, encoding="utf-8")
    with pytest.raises(Refusal, match=said):
        trained_tokens.read(tmp_path)


def test_the_shipped_model_has_12_288_trained_rows_and_the_end_of_text_comes_first() -> None:
    found = trained_tokens.read(resources.path("models", "decodescope-6x8"))
    assert found is not None
    assert len(found) == 12_288
    assert found[0] == END_OF_TEXT
