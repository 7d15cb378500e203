"""Answers are found by typing a part of them, and chosen by moving."""

import pytest

from rowcall.cli.prompt import Choosing, Option, _shown

FIELDS = [Option(name, name, about) for name, about in (("email", "required"), ("name", ""), ("nickname", "text"))]


def test_one_moves_round_the_ends() -> None:
    choosing = Choosing(FIELDS)
    choosing.move(-1)
    assert choosing.chosen == FIELDS[2]
    choosing.move(1)
    assert choosing.chosen == FIELDS[0]


def test_typing_narrows_and_what_begins_so_comes_first() -> None:
    choosing = Choosing([FIELDS[2], FIELDS[1], FIELDS[0]])
    choosing.type("NAM")
    assert [option.label for option in choosing.found] == ["name", "nickname"]
    choosing.type("q")
    assert choosing.chosen is None
    choosing.move(1)
    for _ in range(9):
        choosing.erase()
    assert (choosing.typed, len(choosing.found)) == ("", 3)


def test_what_is_told_beside_an_answer_is_searched_too() -> None:
    choosing = Choosing(FIELDS)
    choosing.type("req")
    assert choosing.chosen == FIELDS[0]


def test_of_many_answers_those_around_are_shown() -> None:
    choosing = Choosing([Option(n, str(n)) for n in range(100)], at=50)
    first, window = choosing.window()
    assert (first, len(window), choosing.chosen in window) == (45, 10, True)
    choosing.move(-51)
    assert choosing.window()[0] == 90


def test_nothing_to_choose_from_is_no_answer() -> None:
    assert Choosing[int]([]).chosen is None


def test_what_is_told_above_a_question_is_whole_on_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    about = "Column 'weight' has numbers such as '1,234' that can be read in two ways."
    shown = "".join(part[1] for part in _shown(Choosing(FIELDS), "Which?", [about]))
    told = shown.partition("Which?")[0].splitlines()
    assert " ".join(told) == about
    assert max(map(len, told)) <= 20
