"""Questions at a terminal: one of several answers, by arrow keys or by typing a part of it; or a text.

`Choosing` is what is chosen from and where one is; the rest shows it and takes keys.
"""

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from shutil import get_terminal_size
from textwrap import wrap
from typing import TYPE_CHECKING, Generic, TypeVar

from rowcall.cli.screen import visible

if TYPE_CHECKING:  # loaded when somebody is asked
    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.output import Output

_T = TypeVar("_T")
_SHOWN = 10
"""Answers that are shown at a time."""


class Left(Exception):
    """Whoever was asked went away: Esc, Ctrl-C, or the end of the input."""


@dataclass(frozen=True, slots=True)
class Option(Generic[_T]):
    """An answer, and what is told beside it."""

    value: _T
    label: str
    about: str = ""


@dataclass(slots=True)
class Choosing(Generic[_T]):
    """What can be chosen, what was typed to find it, and where one is."""

    options: Sequence[Option[_T]]
    typed: str = ""
    at: int = 0
    found: list[Option[_T]] = field(init=False)

    def __post_init__(self) -> None:
        self.found = list(self.options)
        self.at = min(self.at, max(0, len(self.found) - 1))

    @property
    def chosen(self) -> Option[_T] | None:
        return self.found[self.at] if self.found else None

    def move(self, steps: int) -> None:
        """Up or down, round the ends."""
        if self.found:
            self.at = (self.at + steps) % len(self.found)

    def type(self, text: str) -> None:
        """Narrow the answers to those that have all of the words."""
        self._find(self.typed + text)

    def erase(self) -> None:
        """Take the last character back."""
        self._find(self.typed[:-1])

    def _find(self, typed: str) -> None:
        before = self.chosen
        self.typed = typed
        words = typed.casefold().split()
        self.found = [each for each in self.options if _has(each, words)]
        self.found.sort(key=lambda each: not each.label.casefold().startswith(typed.casefold().strip()))
        stays = not words and before in self.found
        self.at = self.found.index(before) if stays and before else 0

    def window(self) -> tuple[int, list[Option[_T]]]:
        """The answers around where one is, and the place of the first of them."""
        first = max(0, min(self.at - _SHOWN // 2, len(self.found) - _SHOWN))
        return first, self.found[first : first + _SHOWN]


def _has(option: Option[_T], words: Sequence[str]) -> bool:
    text = f"{option.label} {option.about}".casefold()
    return all(word in text for word in words)


def can_ask() -> bool:
    """Whether somebody sits at a terminal."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def choose(question: str, options: Sequence[Option[_T]], *, at: int = 0, about: Sequence[str] = ()) -> _T:
    """The answer that somebody chooses."""
    choosing = Choosing(options, at=at)
    chosen = _run(choosing, question, about)
    sys.stdout.write(f"{visible(question)} {visible(chosen.label)}\n")
    sys.stdout.flush()
    return chosen.value


def ask_text(question: str) -> str:
    """A text that somebody types, on one line."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

    keys = KeyBindings()

    @keys.add("escape", eager=True)
    def leave(event: KeyPressEvent) -> None:
        event.app.exit(exception=Left())

    session: PromptSession[str] = PromptSession(key_bindings=keys, output=_output())
    session.app.ttimeoutlen = 0.05
    try:
        return session.prompt(f"{visible(question)} ").strip()
    except (KeyboardInterrupt, EOFError):
        raise Left from None


def _run(choosing: Choosing[_T], question: str, about: Sequence[str]) -> Option[_T]:
    from prompt_toolkit.application import Application
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
    from prompt_toolkit.layout import FormattedTextControl, Layout, Window

    keys = KeyBindings()

    def on(*names: str, do: Callable[[KeyPressEvent], None]) -> None:
        for name in names:
            keys.add(name, eager=True)(do)

    def enter(event: KeyPressEvent) -> None:
        if choosing.chosen is not None:
            event.app.exit(result=choosing.chosen)

    on("up", "c-p", "s-tab", do=lambda _: choosing.move(-1))
    on("down", "c-n", "tab", do=lambda _: choosing.move(1))
    on("pageup", do=lambda _: choosing.move(-min(_SHOWN, choosing.at)))
    on("pagedown", do=lambda _: choosing.move(min(_SHOWN, len(choosing.found) - 1 - choosing.at)))
    on("backspace", do=lambda _: choosing.erase())
    on("enter", do=enter)
    on("escape", "c-c", "c-d", do=lambda event: event.app.exit(exception=Left()))

    @keys.add("<any>")
    def typed(event: KeyPressEvent) -> None:
        if event.data.isprintable():
            choosing.type(event.data)

    control = FormattedTextControl(lambda: _shown(choosing, question, about), focusable=True, show_cursor=False)
    application: Application[Option[_T]] = Application(
        layout=Layout(Window(control, wrap_lines=False)), key_bindings=keys, erase_when_done=True, output=_output()
    )
    application.ttimeoutlen = 0.05  # what Esc waits for, lest it is the beginning of an arrow key
    return application.run()


def _shown(choosing: Choosing[_T], question: str, about: Sequence[str]) -> "StyleAndTextTuples":
    first, window = choosing.window()
    width = get_terminal_size().columns
    told = [part for line in about for part in wrap(visible(line), width)]
    lines: StyleAndTextTuples = [("", f"{part}\n") for part in told]
    lines += [("bold", visible(question)), ("", f" {visible(choosing.typed)}\n")]
    for place, option in enumerate(window, first):
        here = place == choosing.at
        lines.append(("reverse" if here else "", f"{'>' if here else ' '} {visible(option.label)}"))
        lines.append(("fg:ansibrightblack", f"  {visible(option.about)}\n" if option.about else "\n"))
    if not choosing.found:
        lines.append(("", "  nothing like that\n"))
    elif len(choosing.found) > len(window):
        lines.append(("fg:ansibrightblack", f"  {len(choosing.found) - len(window)} more\n"))
    lines.append(("fg:ansibrightblack", "up, down: choose - type: find - Enter: take - Esc: leave it waiting"))
    return lines


def _output() -> "Output":
    """Standard output. Where the cursor is isn't asked for: not every terminal answers."""
    from prompt_toolkit.data_structures import Size
    from prompt_toolkit.output.vt100 import Vt100_Output

    def size() -> Size:
        columns, lines = get_terminal_size()
        return Size(rows=lines, columns=columns)

    return Vt100_Output(sys.stdout, size, term=os.environ.get("TERM"), enable_cpr=False)
