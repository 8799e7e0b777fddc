"""What the tool bar lets one choose: which model, on which device, at which pace."""

from __future__ import annotations

from pathlib import Path

from app import texts
from app.selection import Draft
from app.widgets.picker import Item
from app.worker import Loaded
from engine import models
from engine.errors import EngineError
from engine.models import KnownModel

FOLDER = "folder"  # asks for a folder of one's own
AUTOMATIC = ("auto", "auto")
PACES = ("5", "20", "60", "full")

# Which formats a device multiplies in. The engine knows it too, but cannot be asked before torch
# is imported; a test compares the two.
DTYPES_ON = {
    "cpu": ("float32", "bfloat16", "float16", "int8"),
    "cuda": ("float16", "float32", "bfloat16"),
    "mps": ("float32", "float16"),
}


def model_items(draft: Draft) -> list[Item]:
    """The models found on this disk, the draft's own folder, and a way to another one."""
    found = [m for m in models.known() if _is_here(m)]
    items = [_known(m) for m in found]
    if current_model(draft) not in [item.id for item in items]:
        items.insert(0, Item(draft.model, model_title(draft), tip=draft.model))
    return [*items, Item(FOLDER, texts.text("toolbar.model_open"))]


def current_model(draft: Draft) -> str:
    """The id of the draft's model among the items."""
    embedded = next(m.name for m in models.known() if m.embedded)
    return embedded if draft.model == models.EMBEDDED else draft.model


def model_title(draft: Draft) -> str:
    """What to call the draft's model, loaded or not."""
    known = next((m.title for m in models.known() if m.name == current_model(draft)), "")
    return draft.model_title or known or Path(draft.model).name or draft.model


def device_items(devices: list[str], loaded: Loaded | None = None) -> list[Item]:
    """The automatic choice, and every format of these devices.

    The tip of the one in use is what was noted when the model was loaded: what rounding its weights
    does to its answers, for one.
    """
    tips = {}
    if loaded is not None:
        tips[device_id(loaded.device, loaded.dtype)] = "\n".join(loaded.notes)
    items = [Item(device_id(*AUTOMATIC), texts.text("toolbar.device_auto"))]
    for device in devices:
        for dtype in DTYPES_ON[device]:
            id = device_id(device, dtype)
            items.append(Item(id, _device_words(device, dtype), tip=tips.get(id, "")))
    return items


def device_id(device: str, dtype: str) -> str:
    """The id of a device and a format among the items."""
    return f"{device} {dtype}"


def device_of(id: str) -> tuple[str, str]:
    """The device and the format that an id stands for."""
    device, dtype = id.split()
    return device, dtype


def pace_items() -> list[Item]:
    """Tokens a second at most."""
    return [
        Item(p, texts.text(f"toolbar.pace_{p}"), texts.text(f"toolbar.pace_{p}_short"))
        for p in PACES
    ]


def _known(model: KnownModel) -> Item:
    d = model.dimensions
    millions = d.n_params / 1e6
    title = model.title
    if f"{millions:.0f}M" not in title.replace(" ", ""):
        title = texts.text("toolbar.model_item", title=title, millions=millions)
    tip = texts.text(
        "toolbar.model_item_tip",
        description=model.description,
        params=d.n_params,
        n_layer=d.n_layer,
        n_head=d.n_head,
        n_positions=d.n_positions,
        licence=model.licence,
    )
    return Item(model.name, title, short=model.title, tip=tip)


def _is_here(model: KnownModel) -> bool:
    try:
        models.find(model.name)
    except EngineError:
        return False
    return True


def _device_words(device: str, dtype: str) -> str:
    names = {"device": texts.text(f"toolbar.device_{device}")}
    return texts.text("toolbar.device_item", dtype=texts.text(f"toolbar.dtype_{dtype}"), **names)
