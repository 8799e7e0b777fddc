"""What the next run is made of: the prompt, and the sliders of the sampling rule."""

from __future__ import annotations

import secrets
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from PySide6.QtCore import QObject, QTimer, Slot
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QSpacerItem

from app import texts
from app.examples import ExamplesButton
from app.prompt_editor import PromptEditor, remarks
from app.selection import EMPTY, Scene
from app.settings import specs
from app.store import Store
from app.theme import Theme
from app.widget_panel import WidgetPanel, column
from app.widgets.caption import Caption
from app.widgets.slider import Mapping, Slider
from engine.errors import EngineError
from engine.request import check_prompt
from engine.tokenizer import Tokenizer

LONG = 5_000  # characters above which tokens wait until the typing rests
REST_MS = 150
MOST_CHANCE = 10_000  # a seed by chance stays below, so that it can be read and told


class PromptControls(WidgetPanel):
    """The prompt, its tokens as it is typed, and what keeps it from running."""

    id = "prompt"

    def __init__(self, store: Store, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(store, theme, parent)
        self._tokenizer: Tokenizer | None = None
        self._text = ""
        self._judged: object = None  # what the store was last told about
        self._refusal = ""
        self.editor = PromptEditor(theme)
        self.canvas.setFocusProxy(self.editor)
        self.line = Caption(theme)
        self.examples = ExamplesButton()
        self._special = QAction(texts.text("controls.special"), self, checkable=True)
        self._special.setToolTip(texts.text("controls.special_tip"))
        self._timer = QTimer(self, singleShot=True, interval=REST_MS)
        self._lay_out()
        self._timer.timeout.connect(self._judge)
        self._special.toggled.connect(self._read_special)
        self.examples.chosen.connect(self._try)
        self.editor.edited.connect(self._follow)
        self.editor.refused.connect(self._refuse)
        self.canvas.resized.connect(self._make_room)

    def set_tokenizer(self, tokenizer: Tokenizer) -> None:
        """Split what is typed from now on, and what is there."""
        self._tokenizer = tokenizer
        self._judge()

    def set_text(self, text: str) -> None:
        """Put another prompt in; undo brings the old one back."""
        self.editor.set_text(text)

    def show(self, scene: Scene) -> None:
        """Take what another hand changed in the draft."""
        if scene.draft.special != self._special.isChecked():
            self._special.setChecked(scene.draft.special)
        if scene.draft.prompt != self._text:
            self.set_text(scene.draft.prompt)
        if self._inputs != self._judged and not self._timer.isActive():
            self._judge()
        self._say()

    def restyle(self, theme: Theme) -> None:
        """Take another theme."""
        self.theme = theme
        self.editor.restyle(theme)
        self.line.restyle(theme)
        self._make_room()

    def subtitle(self) -> str:
        return texts.text("controls.special_on") if self._special.isChecked() else ""

    def actions(self) -> list[QAction]:
        return [self.examples.menu().menuAction(), self._special]

    @property
    def _inputs(self) -> object:
        draft = self.store.draft
        return self._text, draft.prompt, draft.special, draft.n_positions, self._tokenizer

    @Slot()
    def _follow(self) -> None:
        self._text, self._refusal = self.editor.text(), ""
        words = texts.text("controls.prompt_characters", n=len(self._text))
        self.editor.setAccessibleDescription(words)
        if len(self._text) <= LONG:
            self._judge()
        else:
            self._timer.start()
            self.store.edit({"prompt": self._text})
            self._say()

    @Slot()
    def _judge(self) -> None:
        """Tell the store the prompt, its tokens, and what keeps it from running."""
        self._timer.stop()
        draft, prompt = self.store.draft, self._text
        self._judged = (prompt, prompt, draft.special, draft.n_positions, self._tokenizer)
        self.store.edit({"prompt": prompt, **self._verdict(prompt)})
        self._say()

    def _verdict(self, prompt: str) -> dict[str, Any]:
        draft, tokens, problem = self.store.draft, None, None
        try:
            if self._tokenizer is not None:
                tokens = self._tokenizer.encode(prompt, special=draft.special)
            check_prompt(prompt)
        except EngineError as error:
            problem = str(error)
        n, limit = len(tokens or ()), draft.n_positions
        if limit is not None and n > limit:
            facts = {"n": n, "limit": limit, "over": n - limit}
            problem = texts.text("controls.prompt_over_context", **facts)
        return {"tokens": tokens, "problem": problem}

    @Slot(bool)
    def _read_special(self, special: bool) -> None:
        self.store.edit({"special": special})
        self._judge()
        self.retitled.emit()

    @Slot(str)
    def _refuse(self, sentence: str) -> None:
        self._refusal = sentence
        self._say()

    def _say(self) -> None:
        """Under the prompt: what was refused, what is wrong, or what cannot be seen."""
        # An empty box needs no warning: its placeholder says what to do.
        warning = self._refusal or (self.store.draft.problem if self._text else None)
        self.line.say(warning or " · ".join(remarks(self._text)), warns=bool(warning))
        self._make_room()

    @Slot()
    def _make_room(self) -> None:
        """Where there is little room the text has it all; the examples are in the menu as well."""
        roomy = self.canvas.height() >= self.theme.pixels(84)
        self.examples.setVisible(roomy)
        self.line.setVisible(roomy or bool(self.line.text))

    @Slot(str)
    def _try(self, prompt: str) -> None:
        self.set_text(prompt)
        self.editor.setFocus()

    def _lay_out(self) -> None:
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addWidget(self.line, 1)
        row.addWidget(self.examples)
        rows = column(self.canvas)
        rows.setSpacing(4)
        rows.addWidget(self.editor, 1)
        rows.addLayout(row)


class SamplingControls(WidgetPanel):
    """The sliders of the sampling rule, the length and the seed."""

    id = "sampling"

    def __init__(self, store: Store, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(store, theme, parent)
        self._what_if = False
        self.sliders = {
            "temperature": _slider("temperature", decimals=2, off=0),
            "top_k": _slider("top_k", mapping="log", off=0),
            "top_p": _slider("top_p", decimals=2, off=1),
            "max_tokens": _slider("max_tokens", mapping="log"),
            "seed": _slider("seed"),
        }
        self.canvas.setToolTip(texts.in_lines(texts.text("controls.rule_tip")))
        self.rule = Caption(theme)
        self.rule.say(texts.text("controls.rule"))
        self._actions = self._make_actions()
        rows = column(self.canvas)
        for i, (name, slider) in enumerate(self.sliders.items()):
            if i:
                rows.addItem(_gap())
            rows.addWidget(slider)
            slider.changed.connect(partial(self._take, name))
        rows.addStretch()
        rows.addWidget(self.rule)
        self.canvas.resized.connect(self._make_room)
        self.show(EMPTY)

    def show(self, scene: Scene) -> None:
        """Take what another hand changed in the draft."""
        draft = scene.draft
        values = asdict(draft.sampling) | {"max_tokens": draft.max_tokens, "seed": draft.seed}
        for name, value in values.items():
            if self.sliders[name].value != value:
                self.sliders[name].set_value(value)
        # A long seed is wider than its box.
        tip = texts.in_lines(texts.text("controls.seed_tip"))
        self.sliders["seed"].setToolTip(f"{draft.seed}\n{tip}")
        if scene.what_if != self._what_if:
            self._what_if = scene.what_if
            tip = texts.text("controls.rule_tip")
            if self._what_if:
                tip = f"{texts.text('controls.what_if_tip')}\n\n{tip}"
            self.canvas.setToolTip(texts.in_lines(tip))
            self.retitled.emit()

    def restyle(self, theme: Theme) -> None:
        """Take another theme."""
        self.theme = theme
        self.rule.restyle(theme)

    def subtitle(self) -> str:
        return texts.text("controls.what_if") if self._what_if else ""

    def actions(self) -> list[QAction]:
        return self._actions

    def _take(self, name: str, value: float) -> None:
        if name in ("max_tokens", "seed"):
            self.store.edit({name: value})
        else:
            changes: dict[str, Any] = {name: value}
            self.store.edit({"sampling": replace(self.store.draft.sampling, **changes)})

    @Slot()
    def _make_room(self) -> None:
        """The rule is printed where there is room for a sixth row; a tool tip says it anyway."""
        height = sum(slider.sizeHint().height() for slider in self.sliders.values())
        self.rule.setVisible(self.canvas.height() > height + self.theme.pixels(80))

    @Slot()
    def _draw_seed(self) -> None:
        self.store.edit({"seed": secrets.randbelow(MOST_CHANCE)})

    @Slot()
    def _go_back(self) -> None:
        for slider in self.sliders.values():
            slider.reset()

    def _make_actions(self) -> list[QAction]:
        seed = QAction(texts.text("controls.new_seed"), self)
        seed.setToolTip(texts.text("controls.new_seed_tip"))
        seed.triggered.connect(self._draw_seed)
        back = QAction(texts.text("controls.defaults"), self)
        back.setToolTip(texts.text("controls.defaults_tip"))
        back.triggered.connect(self._go_back)
        return [seed, back]


def _gap() -> QSpacerItem:
    """Between two rows: 9 pixels, less where they are needed."""
    policy = QSizePolicy.Policy
    return QSpacerItem(0, 9, policy.Minimum, policy.Maximum)


def _slider(
    name: str, *, decimals: int = 0, mapping: Mapping = "linear", off: int | None = None
) -> Slider:
    """The slider of a setting, with its range, its default and its words."""
    spec = specs()[name]
    assert spec.range is not None and isinstance(spec.default, int | float)
    return Slider(
        texts.text(f"controls.{name}"),
        limits=spec.range,
        track=spec.track,
        default=spec.default,
        mapping=mapping,
        decimals=decimals,
        off=None if off is None else (off, texts.text(f"controls.{name}_off")),
        tip=texts.text(f"controls.{name}_tip"),
    )
