"""The store: one scene, selections that stay possible, drafts that become requests."""

from dataclasses import replace
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.limits import Known, Place
from app.selection import Selection
from app.store import Ask, Store
from engine.events import RunFailed
from engine.request import Sampling
from engine.session import Session
from engine.trace import Trace, same

PROMPT = "Michael Jordan played the sport of"


@pytest.fixture
def store(qtbot: QtBot, recorded: Trace) -> Store:
    """A store in which the recorded run has just ended."""
    store = Store()
    store.edit({"prompt": PROMPT})
    store.run()
    store.take([(1, event) for event in recorded.events])
    return store


def test_an_ended_run_is_shown_at_its_last_step(store: Store) -> None:
    scene = store.scene
    assert scene.moment is not None
    assert (scene.moment.step, scene.selection.live, scene.running) == (13, True, False)
    assert scene.token == 6 + 14 - 1


def test_a_run_is_asked_for_with_what_the_controls_hold(qtbot: QtBot) -> None:
    store = Store()
    store.edit({"prompt": "x", "max_tokens": 3, "seed": 9, "sampling": Sampling(0.0)})
    with qtbot.waitSignal(store.asked) as said:
        store.run()
    ask = said.args[0]
    assert isinstance(ask, Ask)
    request = ask.request
    assert (request.prompt, request.max_tokens, request.seed) == ("x", 3, 9)
    assert request.sampling.temperature == 0


def test_an_empty_prompt_is_refused_in_a_sentence(qtbot: QtBot) -> None:
    store = Store()
    with qtbot.waitSignal(store.refused) as said, qtbot.assertNotEmitted(store.asked):
        store.run()
    assert "empty" in said.args[0]
    assert not store.running


def test_scrubbing_stays_while_events_come_and_live_follows(qtbot: QtBot, recorded: Trace) -> None:
    store = Store()
    store.edit({"prompt": PROMPT})
    store.run()
    store.take([(1, event) for event in recorded.events[:8]])  # three draws
    store.scrub(0)
    store.take([(1, event) for event in recorded.events[8:12]])
    assert (store.selection.step, store.selection.live) == (0, False)
    store.go_live()
    assert store.selection.step == 4


def test_selecting_a_token_never_moves_time(store: Store) -> None:
    store.scrub(5)
    store.select(token=2)
    assert (store.selection.step, store.scene.token) == (5, 2)


def test_scrubbing_lets_the_token_follow_again(store: Store) -> None:
    store.select(token=2)
    store.scrub(3)
    assert store.scene.token == 6 + 3


def test_a_selection_is_kept_possible(store: Store) -> None:
    store.scrub(99)
    assert store.selection.step == 13
    store.select(layer=50, head=50, token=500)
    assert (store.selection.layer, store.selection.head, store.selection.token) == (5, 7, None)


def test_the_same_selection_says_nothing(qtbot: QtBot, store: Store) -> None:
    store.select(layer=2)
    with qtbot.assertNotEmitted(store.changed):
        store.select(layer=2)


def test_hovering_changes_no_scene(qtbot: QtBot, store: Store) -> None:
    scene = store.scene
    with qtbot.assertNotEmitted(store.changed), qtbot.waitSignal(store.hovered):
        store.point_at(3)
    assert store.scene is scene


def test_a_slider_moved_after_a_run_is_a_what_if_and_no_order(qtbot: QtBot, store: Store) -> None:
    assert not store.scene.what_if
    with qtbot.assertNotEmitted(store.ordered):
        store.edit({"sampling": Sampling(0.1)})
    assert store.scene.what_if


def test_a_slider_moved_during_a_run_is_an_order(qtbot: QtBot) -> None:
    store = Store()
    store.edit({"prompt": "x"})
    store.run()
    with qtbot.waitSignal(store.ordered) as said:
        store.edit({"sampling": Sampling(0.1)})
    assert said.args[0] == Sampling(0.1)


def test_a_run_refused_before_it_began_leaves_the_last_one_open(store: Store) -> None:
    store.run()
    store.take([(2, RunFailed("context_too_long", "Too long.", "", 0))])
    assert store.session.open_id == 1
    assert store.scene.moment is not None
    assert not store.running


def test_a_branch_begins_with_its_parents_events(qtbot: QtBot, store: Store) -> None:
    with qtbot.waitSignal(store.asked) as said:
        store.branch(262, step=4)
    ask = said.args[0]
    assert (ask.step, ask.pick, ask.parent) == (4, 262, store.session.runs[1].trace)
    branch = store.session.runs[2]
    assert (branch.parent, branch.fork_step, branch.trace.n_steps) == (1, 4, 5)
    assert store.scene.moment is not None


def test_another_run_can_be_opened_again(store: Store) -> None:
    store.branch(262, step=4)
    store.take([(2, RunFailed("internal", "Broke.", "", 0))])
    store.open_run(1)
    assert store.selection == Selection(run=1, step=13)


def test_the_controls_stand_as_they_did_for_a_run_that_is_opened_again(store: Store) -> None:
    store.edit({"prompt": "another", "sampling": Sampling(0.0), "seed": 7})
    assert store.scene.what_if
    store.open_run(1)
    assert (store.draft.prompt, store.draft.seed) == (PROMPT, 1)
    assert not store.scene.what_if
    assert not store.scene.draft_differs


@pytest.fixture
def crowded(qtbot: QtBot, recorded: Trace, tmp_path: Path) -> Store:
    """Two runs where the budget holds one and a half: the first lies away from the open line."""
    store = Store(budget=recorded.nbytes * 3 // 2, cache=tmp_path)
    store.edit({"prompt": PROMPT})
    for run in (1, 2):
        store.run()
        store.take([(run, event) for event in recorded.events])
    return store


def test_a_run_away_from_the_open_one_rests_in_a_file_and_comes_back(
    crowded: Store, recorded: Trace, tmp_path: Path
) -> None:
    runs = crowded.session.runs
    assert runs[1].resting is not None
    assert not runs[1].trace.has("attention")
    assert runs[2].trace.has("logits")
    crowded.open_run(1)
    assert same(crowded.session.runs[1].trace, recorded)
    assert list(tmp_path.iterdir()) == []  # what is awake needs no file


def test_a_rested_run_whose_file_is_gone_is_said_and_the_open_one_stays(
    qtbot: QtBot, crowded: Store, tmp_path: Path
) -> None:
    next(tmp_path.iterdir()).unlink()
    with qtbot.waitSignal(crowded.refused) as said:
        crowded.open_run(1)
    assert "no trace file" in said.args[0]
    assert crowded.session.open_id == 2


def test_the_files_of_rested_runs_go_with_the_session(crowded: Store, tmp_path: Path) -> None:
    assert len(list(tmp_path.iterdir())) == 1
    crowded.tidy()
    assert list(tmp_path.iterdir()) == []


def test_without_a_budget_for_the_open_run_its_logits_go_and_that_is_said(
    qtbot: QtBot, recorded: Trace
) -> None:
    store = Store(budget=2_000_000)  # the rows take 1.9 MB, the logits 2.8
    store.edit({"prompt": PROMPT})
    store.run()
    with qtbot.waitSignal(store.dropped) as said:
        store.take([(1, event) for event in recorded.events])
    assert said.args[0] == "logits"


def test_a_run_lets_its_logits_go_while_it_still_goes_on(qtbot: QtBot, recorded: Trace) -> None:
    store = Store(budget=1_000_000)
    store.edit({"prompt": PROMPT})
    store.run()
    with qtbot.waitSignal(store.dropped):
        store.take([(1, event) for event in recorded.events[:12]])
    assert store.running
    store.take([(1, event) for event in recorded.events[12:14]])
    assert not store.session.runs[1].trace.has("logits")
    assert store.session.runs[1].trace.samples[-1].top_raw.shape == (256,)


def test_another_session_takes_the_files_of_rested_runs_away(
    crowded: Store, tmp_path: Path
) -> None:
    crowded.open_session(Session())
    assert list(tmp_path.iterdir()) == []


def test_what_is_known_of_the_limits_is_part_of_the_scene(qtbot: QtBot) -> None:
    store, known = Store(), Known(Place("A processor", 1, "cpu", "float32", 2), "unmeasured")
    assert store.scene.limits is None
    with qtbot.waitSignal(store.changed):
        store.know(known)
    assert store.scene.limits == known
    with qtbot.assertNotEmitted(store.changed):
        store.know(replace(known))
    with qtbot.waitSignal(store.limits_asked):
        store.ask_limits()
