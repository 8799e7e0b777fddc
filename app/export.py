"""Pictures of panels: painted off screen by the code that paints the screen, written as PNG."""

from __future__ import annotations

import os
import secrets
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from PySide6.QtCore import QBuffer, QIODevice, QRectF, QSize
from PySide6.QtGui import QImage, QPainter

from app import theme as themes
from app.dock import RADIUS, ROW, SIDE, TitleRow
from app.panels.base import PADDING, Panel
from app.theme import Theme
from engine import __version__
from engine.errors import EngineError
from engine.trace import Trace

LEAST = QSize(280, 156)  # a panel squeezed smaller, or never shown, is exported at this size
DOTS_PER_METRE = 96 / 0.0254  # at scale 1: the size on paper is that on a common screen
MOST_WORDS = 40  # characters of the prompt in a file's name
FORBIDDEN = frozenset('<>:"/\\|?*')  # in file names, here or on another system


def painted(
    panel: Panel,
    *,
    size: QSize | None = None,
    scale: float = 1.0,
    theme: Theme | None = None,
    picture: str = "",
) -> QImage:
    """Paint a panel with its title row; the shown panel stays as it is.

    Args:
        panel: what to paint, as its scene, options and hand-set view stand.
        size: of the picture before scaling; the panel's own where not given.
        scale: pixels of the picture for one of its size.
        theme: light, for white paper, where not given.
        picture: one of `panel.pictures()`; the first where not given.

    Returns:
        An opaque image of exactly size x scale pixels.

    Raises:
        EngineError: kind "export_size", where that is more than memory can hold.
    """
    theme = theme or themes.load("light", panel.theme.scale)
    row = theme.pixels(ROW)
    size = size or (panel.canvas.size() + QSize(0, row)).expandedTo(LEAST)
    width, height = round(size.width() * scale), round(size.height() * scale)
    image = QImage(width, height, QImage.Format.Format_RGB32)
    if image.isNull():
        raise EngineError("export_size", width=width, height=height)
    image.setDevicePixelRatio(scale)
    image.fill(theme.color("panel"))
    title, body = QRectF(0, 0, size.width(), row), QRectF(0, row, size.width(), size.height() - row)
    left, top, right, bottom = PADDING
    body.adjust(left, top, -right, -bottom - RADIUS)
    with _restyled(panel, theme), _painting(image) as painter:
        _paint_title(painter, title, panel, picture)
        panel.paint_picture(picture or panel.pictures()[0], painter, body)
    image.setDevicePixelRatio(1)
    image.setDotsPerMeterX(round(DOTS_PER_METRE * scale))
    image.setDotsPerMeterY(round(DOTS_PER_METRE * scale))
    return image


def write_picture(panel: Panel, path: str | Path, *, scale: float = 1.0, picture: str = "") -> None:
    """Write one of a panel's pictures, as large as the panel times scale, for white paper.

    Raises:
        EngineError: kind "export_format", "export_size" or "export_write".
    """
    check_suffix(path)
    moment = panel.scene.moment
    told = facts(moment.trace if moment is not None else None)
    told["Title"] = f"{panel.title}: {picture or panel.pictures()[0]}"
    if moment is not None:
        told["Step"] = str(moment.step + 1)
    if "attention" in panel.needs:
        selection = panel.scene.selection
        told["Layer"] = str(selection.layer)
        told["Head"] = "all" if selection.head is None else str(selection.head)
    save_png(painted(panel, scale=scale, picture=picture), path, told)


def save_png(image: QImage, path: str | Path, facts: Mapping[str, str]) -> None:
    """Write an image with its facts as PNG text; an older file is replaced whole or not at all.

    Raises:
        EngineError: kind "export_format" for a name that does not end in .png, or "export_write".
    """
    path = Path(path)
    check_suffix(path)
    image = QImage(image)  # ours to write on
    for key, fact in facts.items():
        image.setText(key, fact.replace("\0", "␀"))  # PNG text ends at a zero
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    if not image.save(buffer, "PNG"):  # type: ignore[call-overload]  # the stub wants bytes
        raise EngineError("export_size", width=image.width(), height=image.height())
    try:
        _replace(path, bytes(buffer.data().data()))
    except OSError as error:
        raise EngineError("export_write", reason=error.strerror or error, path=path) from error


def check_suffix(path: str | Path) -> None:
    """Refuse a file name that says another format than we write."""
    suffix = Path(path).suffix
    if suffix.lower() != ".png":
        raise EngineError("export_format", found=suffix or Path(path).name)


def facts(trace: Trace | None) -> dict[str, str]:
    """What a picture file says about itself: the program, and the run that it shows."""
    told = {"Software": f"Decodescope {__version__}"}
    if trace is None or trace.started is None:
        return told
    started = trace.started
    sampling = started.request.sampling
    return {
        **told,
        "Model": started.model.title,
        "SHA-256": started.sha256,
        "Device": f"{started.device} {started.dtype}",
        "Prompt": started.request.prompt,
        "Seed": str(started.request.seed),
        "Sampling": f"temperature {sampling.temperature:g}, top-k {sampling.top_k}, "
        f"top-p {sampling.top_p:g}",
    }


def suggested_name(panel: Panel, picture: str = "") -> str:
    """A file name that says what the picture shows and that every system takes.

    attention layer 0 head 1 - Michael Jordan played the sport of - step 6.png
    """
    what = panel.id.replace("_", " ")
    if picture not in ("", panel.pictures()[0]):
        what = f"{what} {picture.lower()}"
    parts = [what]
    selection, moment = panel.scene.selection, panel.scene.moment
    if "attention" in panel.needs and selection.head is not None:
        parts[0] += f" layer {selection.layer} head {selection.head}"
    if moment is not None:
        prompt = _plain(moment.started.request.prompt)
        parts.append(prompt if len(prompt) <= MOST_WORDS else prompt[: MOST_WORDS - 1] + "…")
        parts.append(f"step {moment.step + 1}")
    return " - ".join(filter(None, map(_plain, parts))) + ".png"


@contextmanager
def _restyled(panel: Panel, theme: Theme) -> Iterator[None]:
    """The panel in another theme for a moment; it paints itself anew on the screen afterwards."""
    before = panel.theme
    panel.restyle(theme)
    try:
        yield
    finally:
        panel.restyle(before)


@contextmanager
def _painting(image: QImage) -> Iterator[QPainter]:
    """A painter that ends whatever happens: an image must not go while one is on it."""
    painter = QPainter(image)
    painter.setRenderHints(QPainter.RenderHint.Antialiasing | QPainter.RenderHint.TextAntialiasing)
    try:
        yield painter
    finally:
        painter.end()


def _paint_title(painter: QPainter, rect: QRectF, panel: Panel, picture: str) -> None:
    """The title row as the dock has it, without its menu."""
    row = TitleRow(panel.title, panel.theme)
    which = "" if picture == panel.pictures()[0] else picture
    row.say(" · ".join(filter(None, (which, panel.subtitle()))), panel.figure())
    row.paint_words(painter, rect, right=SIDE)
    row.deleteLater()


def _replace(path: Path, data: bytes) -> None:
    part = path.with_name(f".{secrets.token_hex(8)}.part")
    try:
        with part.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _plain(words: str) -> str:
    """On one line, without what a file name must not have."""
    kept = (" " if _is_forbidden(character) else character for character in words)
    return " ".join("".join(kept).split()).strip(". ")


def _is_forbidden(character: str) -> bool:
    """Separators and what nobody sees: controls, format characters, halves of characters."""
    return character in FORBIDDEN or unicodedata.category(character).startswith("C")
