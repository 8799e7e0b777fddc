"""Which engine is wanted and which is there; what to say while it loads and when it cannot."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal, Slot

from app.errors import Banner
from app.settings import Settings
from app.store import Store
from app.worker import Door, Loaded, Unloaded, Wanted


class Loader(QObject):
    """Stands between the choice of a model and the worker that loads it."""

    loaded = Signal(object)  # Loaded

    def __init__(
        self, store: Store, door: Door, settings: Settings, banner: Banner, parent: QObject
    ) -> None:
        super().__init__(parent)
        self.current: Loaded | None = None
        self._store = store
        self._door = door
        self._settings = settings
        self._banner = banner
        door.loaded.connect(self._take)

    def start(self, wanted: Wanted | None = None) -> None:
        """Start the worker's thread with its first engine, that of the settings by default."""
        s = self._settings
        wanted = wanted or Wanted(s["model"], s["device"], s["dtype"])
        self._announce(wanted)
        self._door.start(wanted)

    @Slot(str)
    def load_model(self, model: str) -> None:
        """Load other weights; the session stays."""
        self._settings.set("model", model)
        self._load(Wanted(model, self._settings["device"], self._settings["dtype"]))

    @Slot(str, str)
    def load_device(self, device: str, dtype: str) -> None:
        """Put the model on another device or into another number format."""
        self._settings.set("device", device)
        self._settings.set("dtype", dtype)
        self._load(Wanted(self._settings["model"], device, dtype))

    def _load(self, wanted: Wanted) -> None:
        self._announce(wanted)
        self._door.load(wanted)

    def _announce(self, wanted: Wanted) -> None:
        self.current = None
        self._store.edit({"model": wanted.model, "model_state": "loading"})

    @Slot(object)
    def _take(self, said: Loaded | Unloaded) -> None:
        if isinstance(said, Unloaded):
            self._store.edit({"model_state": "failed", "n_positions": None})
            self._banner.say(said.message, detail=said.detail, model=True)
            return
        self.current = said
        n_positions = said.model.dimensions.n_positions
        self._store.edit(
            {"model_state": "ready", "model_title": said.model.title, "n_positions": n_positions}
        )
        self.loaded.emit(said)
        if said.notes:
            self._banner.say("\n".join(said.notes))
