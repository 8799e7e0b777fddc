"""One time and the floors under it: thin bars on one scale, and what they say together."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter

from app.theme import Theme
from app.widgets.marks import (
    Mark,
    draw_box,
    draw_mark,
    draw_text,
    draw_wrapped,
    text_width,
)

# As designed, in pixels at scale 1.
HEAD, ROW, BAR, GAP = 20, 15, 7, 10
LEAST, MOST, SHARE = 272, 328, 0.24  # widths beside something else, and of the whole
BETWEEN = 33  # with a hairline in the middle
LEAST_BESIDE = 480  # that something else keeps
MARK, BUTTON, SIDE = 11, 22, 9
PITCH = 1.25  # of the lines of a sentence, as draw_wrapped has it


@dataclass(frozen=True, slots=True)
class Row:
    """One time as a bar."""

    name: str
    ns: float
    time: str
    mark: Mark
    role: str  # its colour
    share: str = ""  # a derived figure at the right
    strong: bool = False
    rank: int = 0  # the highest gives way first where there is no room


@dataclass(frozen=True, slots=True)
class Sheet:
    """What there is to show; without rows, `head` is a sentence."""

    head: str
    figure: str = ""  # beside it, derived
    what: str = ""  # whose time it is
    rows: tuple[Row, ...] = ()
    note: str = ""  # a warning, in place of the row that matters least
    button: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """Where it lies: painting and the mouse go by the same one."""

    head: QRectF
    rows: tuple[tuple[Row, QRectF], ...]
    note: QRectF
    button: QRectF  # empty where there is none

    def on_button(self, pos: QPointF) -> bool:
        return self.button.contains(pos)


def beside(rect: QRectF, theme: Theme) -> tuple[QRectF, QRectF]:
    """Part a rect into one for something else and one for a sheet; that is empty without room."""
    width = min(max(theme.pixels(LEAST), SHARE * rect.width()), theme.pixels(MOST))
    rest = rect.width() - width - theme.pixels(BETWEEN)
    if rest < theme.pixels(LEAST_BESIDE) or rect.height() < theme.pixels(HEAD + 2 * ROW):
        return rect, QRectF()
    left = QRectF(rect.left(), rect.top(), round(rest), rect.height())
    return left, QRectF(rect.right() - round(width), rect.top(), round(width), rect.height())


def lay_out(sheet: Sheet, rect: QRectF, theme: Theme) -> Plan:
    """Lay a sheet out in rect; rows that find no room are left out, the highest rank first."""
    if not sheet.rows:
        return _lay_out_sentence(sheet, rect, theme)
    head = QRectF(rect.left(), rect.top(), rect.width(), theme.pixels(HEAD))
    pitch, y = theme.pixels(ROW), head.bottom()
    n = max(0, int((rect.height() - head.height()) // pitch) - bool(sheet.note))
    by_rank = sorted(range(len(sheet.rows)), key=lambda i: sheet.rows[i].rank)
    rows = []
    for i in sorted(by_rank[:n]):
        rows.append((sheet.rows[i], QRectF(rect.left(), y, rect.width(), pitch)))
        y += pitch
    line = QRectF(rect.left(), y, rect.width(), pitch)
    if not sheet.button:
        return Plan(head, tuple(rows), line, QRectF())
    width = _button_width(sheet, theme)
    button = QRectF(line.right() - width, line.top() + 1, width, pitch)
    return Plan(head, tuple(rows), line.adjusted(0, 0, -width, 0), button)


def _lay_out_sentence(sheet: Sheet, rect: QRectF, theme: Theme) -> Plan:
    metrics = QFontMetricsF(theme.font("ui", 12))
    box = metrics.boundingRect(rect, Qt.TextFlag.TextWordWrap, sheet.head)
    height = box.height() * PITCH if sheet.button else rect.height()
    head = QRectF(rect.left(), rect.top() + theme.pixels(4), rect.width(), height)
    if not sheet.button:
        return Plan(head, (), QRectF(), QRectF())
    button_height = theme.pixels(BUTTON)
    top = min(head.bottom() + theme.pixels(6), rect.bottom() - button_height)
    button = QRectF(rect.left(), top, _button_width(sheet, theme), button_height)
    head.setBottom(min(head.bottom(), top))
    return Plan(head, (), QRectF(), button)


def _button_width(sheet: Sheet, theme: Theme) -> float:
    return text_width(sheet.button, theme.font("ui", 11)) + 2 * theme.pixels(SIDE)


def draw_floor_bars(painter: QPainter, sheet: Sheet, plan: Plan, theme: Theme) -> None:
    """Draw a sheet where the plan says."""
    if sheet.rows:
        _draw_head(painter, sheet, plan.head, theme)
        _draw_rows(painter, plan, theme)
    else:
        muted = theme.color("muted")
        draw_wrapped(painter, plan.head, sheet.head, theme.font("ui", 12), muted)
    if sheet.note:
        font, y = theme.font("ui", 11), plan.note.bottom() - theme.pixels(3)
        x, room = plan.note.left(), plan.note.width() - theme.pixels(GAP)
        draw_text(painter, x, y, sheet.note, font, theme.color("warn"), width=room)
    if sheet.button:
        box, font = plan.button, theme.font("ui", 11)
        raised, line = theme.color("raised"), theme.color("line")
        draw_box(painter, box, radius=4, fill=raised, line=line)
        y = box.center().y() + theme.pixels(4)
        draw_text(painter, box.center().x(), y, sheet.button, font, theme.color("text"), "center")


def _draw_head(painter: QPainter, sheet: Sheet, rect: QRectF, theme: Theme) -> None:
    """What held it, how near it came, and at the right whose time it is; that gives way first."""
    x, y, gap = rect.left(), rect.top() + theme.pixels(12), theme.pixels(7)
    font, color = theme.font("strong", 12), theme.color("text")
    x += draw_text(painter, x, y, sheet.head, font, color, width=rect.width()) + gap
    font, room = theme.font("ui", 12), rect.right() - x - theme.pixels(MARK)
    if room > theme.pixels(20):
        muted = theme.color("muted")
        x += draw_text(painter, x, y, sheet.figure, font, muted, width=room) + theme.pixels(3)
        x += draw_mark(painter, x, y, "derived", theme) + gap
    font = theme.font("ui", 11)
    if text_width(sheet.what, font) <= rect.right() - x:
        draw_text(painter, rect.right(), y, sheet.what, font, theme.color("faint"), "right")


def _draw_rows(painter: QPainter, plan: Plan, theme: Theme) -> None:
    rows = [row for row, _ in plan.rows]
    if not rows:
        return
    font, strong, px = theme.font("ui", 11), theme.font("strong", 11), theme.pixels
    name = max(text_width(row.name, strong) for row in rows)
    time = max(text_width(row.time, font) for row in rows)
    share = max(text_width(row.share, font) for row in rows)
    left = plan.head.left() + name + px(GAP)
    time_right = plan.head.right() - (share + px(MARK + GAP) if share else 0) - px(MARK)
    right = time_right - time - px(GAP)
    longest = max(row.ns for row in rows)
    for row, rect in plan.rows:
        y = rect.bottom() - px(4)
        color = theme.color("text" if row.strong else "muted")
        draw_text(painter, rect.left(), y, row.name, strong if row.strong else font, color)
        if right > left:
            width = max(1.0, (right - left) * row.ns / longest)
            bar = QRectF(left, rect.center().y() - px(BAR) / 2, width, px(BAR))
            draw_box(painter, bar, radius=1.5, fill=theme.color(row.role))
        draw_text(painter, time_right, y, row.time, font, color, "right")
        draw_mark(painter, time_right + px(3), y, row.mark, theme)
        if row.share:
            draw_text(painter, rect.right() - px(MARK), y, row.share, font, color, "right")
            draw_mark(painter, rect.right() - px(MARK) + px(3), y, "derived", theme)
