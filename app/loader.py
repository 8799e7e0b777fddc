"""Which engine is wanted and which is there; what to say while it loads and when it cannot."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QObject, Signal, Slot

from app import texts
from app.errors import Banner
from app.settings import Settings
from app.store import Store
from app.worker import Door, Loaded, Unloaded, Wanted


class Loader(QObject):
    """Stands between the choice of a model and the worker that loads it.

    Two models never share the memory, so the old one goes before the new one is read. If that is
    refused, the old one is loaded again.
    """

    loaded = Signal(object)  # Loaded

    def __init__(
        self, store: Store, door: Door, settings: Settings, banner: Banner, parent: QObject
    ) -> None:
        super().__init__(parent)
        self.current: Loaded | None = None
        self._last: Loaded | None = None  # the way back
        self._wanted = Wanted()
        self._chosen = False  # by a person, so it is kept for the next start
        self._store = store
        self._door = door
        self._settings = settings
        self._banner = banner
        door.loaded.connect(self._take)

    def start(self, wanted: Wanted | None = None) -> None:
        """Start the worker's thread with its first engine, that of the settings by default."""
        s = self._settings
        self._announce(wanted or Wanted(s["model"], s["device"], s["dtype"]))
        self._door.start(self._wanted)

    @Slot(str)
    def load_model(self, model: str) -> None:
        """Load other weights; the session stays."""
        self._choose(replace(self._wanted, model=model))

    @Slot(str, str)
    def load_device(self, device: str, dtype: str) -> None:
        """Put the model on another device or into another number format."""
        self._choose(replace(self._wanted, device=device, dtype=dtype))

    def _choose(self, wanted: Wanted) -> None:
        self._banner.hide()  # what it says is about another model
        self._chosen = True
        self._load(wanted)

    def _load(self, wanted: Wanted) -> None:
        self._announce(wanted)
        self._door.load(wanted)

    def _announce(self, wanted: Wanted) -> None:
        self.current = None
        self._wanted = wanted
        self._store.edit({"model": wanted.model, "model_title": "", "model_state": "loading"})

    @Slot(object)
    def _take(self, said: Loaded | Unloaded) -> None:
        if isinstance(said, Unloaded):
            self._go_back(said)
            return
        self.current = self._last = said
        if self._chosen:
            self._chosen = False
            for name in ("model", "device", "dtype"):
                self._settings.set(name, getattr(said.wanted, name))
        n_positions = said.model.dimensions.n_positions
        self._store.edit(
            {"model_state": "ready", "model_title": said.model.title, "n_positions": n_positions}
        )
        self.loaded.emit(said)
        if said.notes and not self._banner.sentence:  # a refusal matters more
            self._banner.say("\n".join(said.notes))

    @property
    def lasting(self) -> str:
        """What is to stay in sight while runs go on: how far int8 weights are from float32."""
        said = self.current
        return "\n".join(said.notes) if said is not None and said.dtype == "int8" else ""

    def _go_back(self, said: Unloaded) -> None:
        """Say why, and load what was there before, if that is something else."""
        last, self._last, self._chosen = self._last, None, False
        if last is None or last.wanted == said.wanted:
            self._store.edit({"model_state": "failed", "n_positions": None})
            self._banner.say(said.message, detail=said.detail, model=True)
            return
        facts = {"message": said.message, "model": last.model.title}
        self._banner.say(texts.text("error.back", **facts), detail=said.detail, model=True)
        self._load(last.wanted)
