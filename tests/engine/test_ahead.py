"""Run-ahead: what is launched, what is found, and that no answer depends on it."""

import random

import pytest

from engine.ahead import N_AHEAD, N_SLOTS, Ahead
from engine.request import Sampling

WARM, COLD = Sampling(temperature=1.0), Sampling(temperature=0.5)
N_POSITIONS = 40


def answer(tokens: list[int]) -> int:
    """What a step says of all tokens up to its own: any number that depends on each."""
    return hash(tuple(tokens)) % 1_000_003


def draw(said: int, sampling: Sampling, seed: int) -> int:
    return hash((said, sampling.temperature, seed)) % 5


class Fake:
    """A device that does nothing before somebody waits, and then all in order up to there."""

    def __init__(self) -> None:
        self.launches: list[tuple[int, int | None]] = []  # position, token
        self.packets: dict[int, tuple[int, int, int]] = {}  # slot -> position, answer, drawn
        self._queue: list[tuple[int, int, int | None, tuple[Sampling, int]]] = []
        self._tokens = [0] * N_POSITIONS  # as K and V: what lies beyond a step is ignored
        self._token = 0
        self._drawn_by = (Sampling(temperature=0), 0)

    def draw_by(self, sampling: Sampling, seed: int) -> None:
        self._drawn_by = sampling, seed

    def launch(self, slot: int, *, position: int, token: int | None) -> None:
        assert 0 <= slot < N_SLOTS
        assert 0 <= position < N_POSITIONS
        self.launches.append((position, token))
        self._queue.append((slot, position, token, self._drawn_by))

    def drawn(self, slot: int) -> int:
        return self.wait(slot)[2]

    def prefill(self, tokens: list[int]) -> None:
        """Done in its turn, after all that was launched before."""
        for slot in range(N_SLOTS):
            self.wait(slot)
        self._tokens[: len(tokens)] = tokens

    def wait(self, slot: int) -> tuple[int, int, int]:
        last = max((i for i, (s, *_) in enumerate(self._queue) if s == slot), default=-1)
        for place, position, token, drawn_by in self._queue[: last + 1]:
            self._tokens[position] = self._token if token is None else token
            said = answer(self._tokens[: position + 1])
            self._token = draw(said, *drawn_by)
            self.packets[place] = position, said, self._token
        del self._queue[: last + 1]
        return self.packets.get(slot, (0, 0, 0))


def after(device: Fake, ahead: Ahead, token: int, position: int) -> list[tuple[int, int | None]]:
    """What one more step launches."""
    before = len(device.launches)
    ahead.step(token, position=position)
    return device.launches[before:]


@pytest.fixture
def device() -> Fake:
    return Fake()


@pytest.fixture
def ahead(device: Fake) -> Ahead:
    """Position 4 was asked for with token 9; 5, 6 and 7 are in flight."""
    ahead = Ahead(device, n_positions=N_POSITIONS)
    ahead.expect(WARM, 1)
    assert after(device, ahead, 9, 4) == [(4, 9), (5, None), (6, None), (7, None)]
    return ahead


def test_three_steps_are_made_ahead_and_each_has_a_slot() -> None:
    assert (N_AHEAD, N_SLOTS) == (3, 4)


def test_a_step_that_was_foreseen_launches_only_the_one_after_those_in_flight(
    device: Fake, ahead: Ahead
) -> None:
    for position in (5, 6, 7, 8, 9):
        token = device.drawn(ahead.slot)
        ahead.expect(WARM, 1)
        assert after(device, ahead, token, position) == [(position + 3, None)]
        assert device.wait(ahead.slot)[0] == position == ahead.position


def test_a_token_picked_by_hand_is_launched_and_gone_on_from(device: Fake, ahead: Ahead) -> None:
    other = device.drawn(ahead.slot) + 1
    ahead.expect(WARM, 1)
    assert after(device, ahead, other, 5) == [(5, other), (6, None), (7, None), (8, None)]


def test_the_same_token_at_another_position_was_not_foreseen(device: Fake, ahead: Ahead) -> None:
    token = device.drawn(ahead.slot)
    assert after(device, ahead, token, 4) == [(4, token)]
    assert after(device, ahead, token, 2) == [(2, token)]


@pytest.mark.parametrize("changed", [(COLD, 1), (WARM, 2)], ids=["slider", "seed"])
def test_another_way_to_draw_makes_what_is_in_flight_be_in_vain(
    changed: tuple[Sampling, int], device: Fake, ahead: Ahead
) -> None:
    token = device.drawn(ahead.slot)
    ahead.expect(*changed)
    assert after(device, ahead, token, 5) == [(5, token), (6, None), (7, None), (8, None)]
    _, said, drawn = device.wait(ahead.slot)
    assert drawn == draw(said, *changed)


def test_nothing_is_made_ahead_of_a_draw_that_nobody_expects(device: Fake) -> None:
    ahead = Ahead(device, n_positions=N_POSITIONS)
    assert after(device, ahead, 1, 0) == [(0, 1)]
    ahead.expect(WARM, 1)
    ahead.step(1, position=1)
    found = after(device, ahead, device.drawn(ahead.slot), 2)
    assert found == []  # in flight already, and no more follow


def test_what_was_forgotten_is_launched_again(device: Fake, ahead: Ahead) -> None:
    token = device.drawn(ahead.slot)
    ahead.forget()
    assert after(device, ahead, token, 5) == [(5, token)]


def test_no_step_goes_beyond_the_last_position(device: Fake) -> None:
    ahead = Ahead(device, n_positions=8)
    ahead.expect(WARM, 1)
    assert after(device, ahead, 0, 5) == [(5, 0), (6, None), (7, None)]
    for position in (6, 7):
        ahead.expect(WARM, 1)
        assert after(device, ahead, device.drawn(ahead.slot), position) == []


def test_a_packet_stays_until_the_next_step_is_asked_for(device: Fake, ahead: Ahead) -> None:
    before = device.wait(ahead.slot)
    for slot in range(N_SLOTS):  # let all that is in flight arrive
        device.wait(slot)
    assert device.wait(ahead.slot) == before


@pytest.mark.parametrize("seed", range(20))
def test_whatever_is_asked_the_answers_are_those_of_a_device_that_never_goes_ahead(
    seed: int,
) -> None:
    choose = random.Random(seed)
    device = Fake()
    ahead = Ahead(device, n_positions=N_POSITIONS)
    tokens, wish, hits = [3], (WARM, 1), 0
    for _ in range(200):
        position = len(tokens) - 1
        if choose.random() < 0.9:
            ahead.expect(*wish)
        launched = after(device, ahead, tokens[position], position)
        hits += (position, tokens[position]) not in launched
        assert device.wait(ahead.slot)[:2] == (position, answer(tokens))
        tokens.append(draw(answer(tokens), *wish))
        deed = choose.random()
        if deed < 0.05:
            tokens[-1] = choose.randrange(5)  # a pick
        elif deed < 0.1:
            wish = choose.choice([WARM, COLD]), choose.randrange(3)
        elif deed < 0.15:
            ahead.forget()
            tokens = [choose.randrange(5) for _ in range(choose.randrange(1, 10))]
            device.prefill(tokens[:-1])
        if 0.15 < deed < 0.2 or len(tokens) > N_POSITIONS:
            del tokens[choose.randrange(1, len(tokens)) :]  # a rewind
    assert hits > 50
