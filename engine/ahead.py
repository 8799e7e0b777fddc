"""Which decode steps a device makes before they are asked for, and what becomes of them.

The device draws by the same rule as the run, so it can go on by itself: a step made ahead reads the
token that the step before it drew. The run draws all the same. If it then asks for the very token
at the very position that the device went on with, that step is there already. If not, all that was
made ahead is forgotten and the device is told where to go on. So what is made ahead may save time
or be in vain; it cannot change an answer.
"""

from __future__ import annotations

from typing import Protocol

from engine.request import Sampling

N_AHEAD = 3  # steps for the device while the run draws and a window paints; more may be in vain
N_SLOTS = N_AHEAD + 1  # for the packets of these and of the step that was asked for


class Device(Protocol):
    """What makes steps, one after the other in the order of their launches."""

    def draw_by(self, sampling: Sampling, seed: int) -> None:
        """Draw so in all steps launched from now on."""

    def launch(self, slot: int, *, position: int, token: int | None) -> None:
        """Begin a step, without waiting for it or for those before it.

        Args:
            slot: where its packet goes, 0 to N_SLOTS - 1; what was there is needed no more.
            position: where it reads.
            token: what it reads; None: what the step launched before this one draws.
        """

    def drawn(self, slot: int) -> int:
        """Wait for the packet launched into this slot last; the token drawn from it."""


class Ahead:
    """The step asked for last and those in flight after it, one position each.

    Attributes:
        position: of the step asked for last.
        slot: where its packet is or comes.
    """

    def __init__(self, device: Device, *, n_positions: int) -> None:
        """Start with nothing in flight.

        Args:
            device: makes the steps.
            n_positions: how many positions it has room for.
        """
        self.position = 0
        self.slot = 0
        self._device = device
        self._n_positions = n_positions
        self._n_in_flight = 0
        self._drawn_by: tuple[Sampling, int] | None = None
        self._expected = False

    def expect(self, sampling: Sampling, seed: int) -> None:
        """Say how the run will draw from the step it asks for next.

        What is in flight was drawn from in another way if this changes, and is forgotten.
        """
        if (sampling, seed) != self._drawn_by:
            self._drawn_by = sampling, seed
            self._device.draw_by(sampling, seed)
            self.forget()
        self._expected = True

    def step(self, token: int, *, position: int) -> int:
        """Read a token, or find it read already; go on ahead if a draw is expected.

        Returns:
            The slot of its packet, which is there to stay until the next call.
        """
        if self._is_next(token, position):
            self.slot = self._after(1)
            self._n_in_flight -= 1
        else:
            self.forget()
            self._device.launch(self.slot, position=position, token=token)
        self.position = position
        if self._expected:
            self._go_on()
        self._expected = False
        return self.slot

    def forget(self) -> None:
        """Let what is in flight be in vain."""
        self._n_in_flight = 0

    def _is_next(self, token: int, position: int) -> bool:
        if self._n_in_flight == 0 or position != self.position + 1:
            return False
        return self._device.drawn(self.slot) == token

    def _go_on(self) -> None:
        end = min(self.position + N_AHEAD, self._n_positions - 1)
        while self.position + self._n_in_flight < end:
            self._n_in_flight += 1
            n = self._n_in_flight
            self._device.launch(self._after(n), position=self.position + n, token=None)

    def _after(self, n: int) -> int:
        return (self.slot + n) % N_SLOTS
