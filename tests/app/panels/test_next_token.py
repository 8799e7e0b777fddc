"""Next token: which draw is shown, that each column makes 100 %, what other sliders would do."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import QPointF, QRectF
from pytestqt.qtbot import QtBot

from app import theme
from app.panels.next_token import NextToken
from app.selection import Draft, Scene, Selection
from app.store import Ask, Store
from app.widgets.bars import lay_out
from engine.events import Forward
from engine.request import Sampling
from engine.session import Run, Session
from engine.trace import Trace
from tests.pictures import colors, painted

# The recorded run: "Michael Jordan played the sport of" (6 tokens), then " basketball", ".", "\n",
# "The", " quick" (rank 15 of 17 kept), " brown" and on; drawn with T 0.8, top-k 40, top-p 0.95.
QUICK, COIN_OF_QUICK = 4, 0.9959321484496082


@pytest.fixture
def panel(qtbot: QtBot) -> NextToken:
    """A panel 356 x 330 pixels, as in the right column of the window."""
    panel = NextToken(Store(), theme.load("dark"))
    qtbot.addWidget(panel.canvas)
    panel.canvas.resize(356, 330)
    return panel


def scene(
    trace: Trace,
    step: int,
    *,
    token: int | None = None,
    sampling: Sampling | None = None,
    running: bool = False,
) -> Scene:
    draft = Draft(sampling=sampling or Sampling())
    return Scene(trace.at(step), Selection(1, step, token), draft, Session(), running)


def without_logits(trace: Trace) -> Trace:
    return Trace(
        replace(event, logits=None) if isinstance(event, Forward) else event
        for event in trace.events
    )


def row(panel: NextToken, i: int) -> QPointF:
    """The middle of the i-th row."""
    _, layout = panel._lay_out(panel.area, panel._draw())
    return layout.rows[i].center()


def test_every_moment_says_what_it_follows_and_how_open_it_was(
    panel: NextToken, recorded: Trace
) -> None:
    for step in range(recorded.n_steps):
        panel.show(scene(recorded, step))
        assert not painted(panel, 356, 330).isNull()
    panel.show(scene(recorded, 0))
    assert (panel.subtitle(), panel.figure()) == ("after “·of”", "entropy 0.11 bit")


def test_the_draw_of_a_selected_token_is_shown_whatever_the_step(
    panel: NextToken, recorded: Trace
) -> None:
    panel.show(scene(recorded, 9, token=6 + QUICK))
    assert panel.subtitle() == "after “The”"
    assert panel.spoken().endswith("coin 0.9959 → ·quick")


def test_a_prompt_token_was_read_and_the_steps_draw_is_shown(
    panel: NextToken, recorded: Trace
) -> None:
    panel.show(scene(recorded, 0, token=1))
    assert "“·Jordan” was read, not drawn: this is the step's draw." in panel.spoken()
    assert panel.spoken().endswith("coin 0.0553 → ·basketball")


def test_before_the_first_draw_nothing_is_made_up(panel: NextToken, recorded: Trace) -> None:
    panel.show(scene(Trace(recorded.events[:3]), 0))
    assert panel.empty() == "The prompt is read; the first token is not drawn yet."
    panel.show(scene(recorded, 0))
    assert panel.empty() is None


def test_a_draw_that_arrives_makes_another_picture(panel: NextToken, recorded: Trace) -> None:
    """Moments of one step are equal before and after their draw; pictures are not."""
    trace = Trace(recorded.events[:3])
    before = scene(trace, 0, token=1)
    panel.show(before)
    key = panel.key(before)
    trace.append(recorded.events[3])
    assert panel.key(scene(trace, 0, token=1)) != key


def test_each_column_and_its_rest_make_100_percent(panel: NextToken, recorded: Trace) -> None:
    panel.show(scene(recorded, QUICK))
    draw = panel._draw()
    for n in (1, 3, 10):
        bars = panel._bars(draw, draw.shares.listed(n))
        assert len(bars) == n + 1
        assert sum(bar.before for bar in bars) == pytest.approx(1, abs=1e-12)
        assert sum(bar.after for bar in bars) == pytest.approx(1, abs=1e-12)


def test_the_chosen_token_has_a_row_though_its_rank_is_far_down(
    panel: NextToken, recorded: Trace
) -> None:
    panel.show(scene(recorded, QUICK))
    draw = panel._draw()
    bars = panel._bars(draw, draw.shares.listed(10))
    marked = [i for i, bar in enumerate(bars) if bar.selected and bar.fallen and bar.jump]
    assert marked == [9]  # after the nine most probable, set off by a line, before the rest
    assert (bars[9].label, bars[9].words) == ("·quick", "0.4 %")


def test_the_bars_follow_the_sliders_from_the_stored_logits(
    panel: NextToken, recorded: Trace
) -> None:
    panel.show(scene(recorded, QUICK, sampling=Sampling(0.0)))
    draw = panel._draw()
    assert (draw.what_if, draw.shares.n_kept) == (True, 1)
    assert "what-if drawn with T 0.8 · k 40 · p 0.95" in panel.spoken()
    assert panel.spoken().endswith("greedy → ·capital")  # the largest logit of that step
    panel.show(scene(recorded, QUICK, sampling=Sampling(1.0, 2, 1.0)))
    assert panel._draw().shares.n_kept == 2
    assert panel._draw().shares.written.final == 0  # what was written would be cut now
    assert "0.9959" in panel.spoken().rsplit(". ")[-1]  # the coin stays as it fell


def test_sliders_back_where_they_were_show_the_draw_as_it_was(
    panel: NextToken, recorded: Trace
) -> None:
    panel.show(scene(recorded, QUICK, sampling=Sampling(1.5)))
    panel.show(scene(recorded, QUICK, sampling=Sampling(0.8, 40, 0.95)))
    assert not panel._draw().what_if
    assert panel._draw().shares.written.final == recorded.samples[QUICK].final_prob


def test_without_logits_the_draw_stays_and_the_panel_says_why(
    panel: NextToken, recorded: Trace
) -> None:
    panel.show(scene(without_logits(recorded), QUICK, sampling=Sampling(1.5)))
    assert not panel._draw().what_if
    assert "this step's logits are not recorded" in panel.spoken()
    assert panel.spoken().endswith("coin 0.9959 → ·quick")


def test_a_token_picked_by_hand_had_no_coin(panel: NextToken, recorded: Trace) -> None:
    events = [*recorded.events[:3], replace(recorded.samples[0], coin=None)]
    panel.show(scene(Trace(events), 0))
    assert panel.spoken().endswith("picked by hand")


def test_a_tip_says_where_each_number_comes_from(panel: NextToken, recorded: Trace) -> None:
    panel.show(scene(recorded, 0))
    assert panel.hint(row(panel, 0)).splitlines() == [
        "“·basketball”   id 9669   bytes 20 62 61 73 6b 65 74 62 61 6c 6c",
        "ƒ raw p = 99.0 %, rank 1 of 50,257",
        "ƒ 100 % after T 0.8 · k 40 · p 0.95",
        "Double-click: go on from here with this token, as a branch.",
    ]
    assert "Cut by top-p: the more probable ones reach 0.95" in panel.hint(row(panel, 1))
    assert panel.hint(row(panel, -1)).startswith("The 50,247 ids that have no row here.")
    below = QPointF(100, row(panel, -1).y() + 45)
    assert "Philox(key = seed 1, counter = position 6) = 0.055323" in panel.hint(below)


def test_the_stack_says_whose_part_is_under_the_mouse(panel: NextToken, recorded: Trace) -> None:
    panel.show(scene(recorded, QUICK))
    _, layout = panel._lay_out(panel.area, panel._draw())
    assert layout.stack is not None
    x = layout.stack.left() + COIN_OF_QUICK * layout.stack.width()
    assert panel.hint(QPointF(x, layout.stack.center().y())).startswith("“·quick”")


def test_a_double_click_on_a_row_branches_from_that_draw(
    panel: NextToken, recorded: Trace, qtbot: QtBot
) -> None:
    panel.store.open_session(Session({1: Run(1, "x", recorded)}, open_id=1))
    panel.show(scene(recorded, 9, token=6))
    with qtbot.waitSignal(panel.store.asked) as said:
        panel.double(row(panel, 1))
    ask = said.args[0]
    assert isinstance(ask, Ask)
    assert (ask.pick, ask.step) == (9283, 0)  # " baseball" in place of " basketball"


def test_a_running_model_is_not_branched_and_the_tip_says_when(
    panel: NextToken, recorded: Trace, qtbot: QtBot
) -> None:
    panel.store.open_session(Session({1: Run(1, "x", recorded)}, open_id=1))
    panel.show(scene(recorded, 9, running=True))
    with qtbot.assertNotEmitted(panel.store.asked):
        panel.double(row(panel, 0))
    assert "When the run has ended" in panel.hint(row(panel, 0))


@pytest.mark.parametrize("name", ["dark", "light"])
@pytest.mark.parametrize("scale", [0.8, 1.0, 1.6])
@pytest.mark.parametrize("size", [(280, 120), (300, 250), (356, 330), (1200, 800)])
def test_it_is_painted_at_every_size(
    panel: NextToken, recorded: Trace, name: theme.Name, scale: float, size: tuple[int, int]
) -> None:
    panel.restyle(theme.load(name, scale))
    panel.show(scene(recorded, QUICK, sampling=Sampling(1.5, 0, 1.0)))
    assert len(colors(painted(panel, *size))) > 20
    # The chosen token is marked at every size: its colour is never left out.
    assert panel.theme.color("select").rgb() in colors(painted(panel, *size))


def test_when_it_is_small_rows_go_first_and_nothing_overlaps() -> None:
    """120 pixels hold a row, the rest, the coin and both captions; 330 hold eleven rows."""
    dark = theme.load("dark")
    small = lay_out(QRectF(14, 0, 252, 108), dark, n_rows=257)
    assert (len(small.rows), small.header is None, small.caption is None) == (2, False, False)
    assert small.caption is not None
    assert small.caption.bottom() <= 108
    assert len(lay_out(QRectF(14, 0, 328, 318), dark, n_rows=257).rows) == 11
    assert lay_out(QRectF(14, 0, 252, 60), dark, n_rows=257).stack is None
