"""How many threads a decode step should use while other programs want the processor, too.

A pass of several threads waits for its slowest. Where another program takes a core now and then,
two threads can be three times as slow as one, which waits for nobody. Nothing but trying tells.
"""

from __future__ import annotations

from statistics import fmean, median

WINDOW = 16  # steps that are judged together
SLOW = 2.0  # how many times as long as the median a step must take to count as held up
HELD_UP = 2  # such steps in a window that make one thread worth a try
FIRST_WAIT = 4  # windows until the other number of threads is tried again; doubled each time
LONGEST_WAIT = 256


class Crowd:
    """Watches how long steps take, and says how many threads the next one shall use.

    Attributes:
        n_threads: for the next step: all that there are, or one.
    """

    def __init__(self, n_threads: int, *, watched: bool = True) -> None:
        """Start with all of these threads; if not watched, go on with them whatever happens."""
        self.n_threads = self._all = n_threads
        self._watched = watched and n_threads > 1
        self._recent: list[int] = []  # how long the steps of this window took, ns
        self._with_all = self._with_one = 0.0  # mean of the last window of each, ns; 0 = unknown
        self._wait = FIRST_WAIT
        self._windows_left = 0  # until the other number may be tried

    def took(self, ns: int) -> None:
        """Take in how long a step took with `n_threads`."""
        if not self._watched:
            return
        self._recent.append(ns)
        if len(self._recent) < WINDOW:
            return
        self._windows_left = max(0, self._windows_left - 1)
        if self.n_threads == 1:
            self._judge_one()
        else:
            self._judge_all()
        self._recent = []

    def _judge_all(self) -> None:
        self._with_all = fmean(self._recent)
        limit = SLOW * median(self._recent)
        held_up = sum(ns > limit for ns in self._recent) >= HELD_UP
        if held_up or 0 < self._with_one < self._with_all:
            if not self._windows_left:
                self._use(1)
        else:
            self._wait, self._with_one = FIRST_WAIT, 0.0  # the crowd is gone

    def _judge_one(self) -> None:
        self._with_one = fmean(self._recent)
        if self._with_one >= self._with_all:  # so the others are worth waiting for
            self._use(self._all)
        elif not self._windows_left:
            self.n_threads = self._all  # for a window, to see whether the crowd is gone

    def _use(self, n_threads: int) -> None:
        self.n_threads = n_threads
        self._windows_left = self._wait
        self._wait = min(2 * self._wait, LONGEST_WAIT)
