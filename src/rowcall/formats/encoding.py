"""Finds out a text file's encoding, and reads any encoding as a stream of UTF-8."""

import codecs
import re
from collections import Counter
from pathlib import Path
from typing import BinaryIO, cast

import chardet

from rowcall.errors import FileRefused
from rowcall.formats.reading import KIB, Fact
from rowcall.model import Code

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16: its mark starts with theirs
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

# What files of records come in. Fewer candidates guess better: chardet alone knows 80, and mistakes German for Turkish.
_CANDIDATES = (
    *("cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp1258", "iso8859-2"),
    *("koi8-r", "koi8-u", "cp437", "cp850", "cp852", "cp866", "mac-roman", "cp874"),
    *("cp932", "euc-jp", "gb18030", "big5", "cp949"),
)
_NEVER = {"utf-7", "idna", "punycode", "unicode_escape", "raw_unicode_escape", "undefined"}

_WORD = re.compile(rb"[^\s,;|\"']+")
_SAMPLE = 256 * KIB
_SEARCHED_BLOCKS = 4  # that hold anything beyond ASCII
_ENOUGH_WORDS = 100


def find_encoding(path: Path, given: str | None) -> tuple[Fact, int]:
    """The encoding of a text file with the reason, and the length of its byte order mark."""
    with path.open("rb") as file:
        head = file.read(_SAMPLE)
        mark, marked = next(((len(bom), name) for bom, name in _BOMS if head.startswith(bom)), (0, None))
        if given is not None:
            codec = known_encoding(given)
            return Fact(codec, "given"), mark if codec.startswith((marked or "none")[:6]) else 0
        if marked:
            return Fact(marked, "byte order mark"), mark
        wide = wide_encoding(head)
        if wide:
            return Fact(
                wide, "every other byte of the start is zero" if "16" in wide else "three of four bytes are zero"
            ), 0
        file.seek(0)
        return _narrow(file), 0


def known_encoding(name: str) -> str:
    """The canonical name of a text encoding, or a refusal."""
    try:
        info = codecs.lookup(name)
    except LookupError:
        info = None
    if info is None or info.name in _NEVER or not getattr(info, "_is_text_encoding", True):
        raise FileRefused(
            Code.UNKNOWN_ENCODING,
            f"No text encoding is called {name!r}.",
            hint="Use a name such as utf-8, windows-1252, iso-8859-2, utf-16, shift_jis or gb18030.",
        )
    return {"utf-8-sig": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}.get(info.name, info.name)


def wide_encoding(head: bytes) -> str | None:
    """UTF-16 or UTF-32 without a mark shows in the zero bytes of its ASCII characters, all in the same places."""
    head = head[: len(head) // 4 * 4][: 16 * KIB]
    quarter = len(head) // 4
    zeros = [head[i::4].count(0) for i in range(4)]
    if sum(zeros) < max(3, quarter // 5):
        return None
    if min(zeros[1:]) > 0.9 * quarter and not zeros[0]:
        return "utf-32-le"
    if min(zeros[:3]) > 0.9 * quarter and not zeros[3]:
        return "utf-32-be"
    even, odd = zeros[0] + zeros[2], zeros[1] + zeros[3]
    if 50 * min(even, odd) > max(even, odd):
        return None
    return "utf-16-le" if odd > even else "utf-16-be"


def _narrow(file: BinaryIO) -> Fact:
    """UTF-8 where the text beyond ASCII is valid UTF-8; else the likeliest of the old encodings."""
    tokens = _words_beyond_ascii(file)
    if not tokens:
        return Fact("utf-8", "plain ASCII")
    total = tokens.total()
    good = sum(count for token, count in tokens.items() if is_utf8(token))
    if good == total:
        return Fact("utf-8", f"all {total:,} words beyond ASCII in the sample are valid UTF-8")
    if 2 * good >= total:  # text of another encoding hardly ever happens to be valid UTF-8
        return Fact("utf-8", f"{good:,} of {total:,} words beyond ASCII are valid UTF-8; the others are errors")
    # words alone, once each: what repeats and what is ASCII says nothing about the encoding
    guess = chardet.detect(b"\n".join(tokens), include_encodings=_CANDIDATES, no_match_encoding="cp1252")
    codec = _western_if_equal(codecs.lookup(guess["encoding"] or "cp1252").name, b"\n".join(tokens))
    language = f", the language looks like {guess['language']!r}" if guess.get("language") else ""
    return Fact(codec, f"not UTF-8; guessed from {len(tokens):,} words beyond ASCII{language}")


def _western_if_equal(codec: str, text: bytes) -> str:
    """Windows-1252 where it reads the sample just like the guess: it is the likelier one for words yet to come.

    `ñ` doesn't count as a difference: without it, Spanish names pass for Hungarian.
    """
    guessed, western = text.decode(codec, "replace"), text.decode("cp1252", "replace")
    if len(guessed) == len(western) and {w for g, w in zip(guessed, western, strict=True) if g != w} <= {"ñ", "Ñ"}:
        return "cp1252"
    return codec


def _words_beyond_ascii(file: BinaryIO) -> Counter[bytes]:
    """Words with a byte beyond ASCII, from wherever in the file they first turn up."""
    words: Counter[bytes] = Counter()
    searched = 0
    while searched < _SEARCHED_BLOCKS and words.total() < _ENOUGH_WORDS and (block := file.read(_SAMPLE)):
        if block.isascii():
            continue  # about 10 GB/s: a file whose first accent is in its last line is still read right
        if not block.endswith(b"\n"):
            block += file.readline(_SAMPLE)
        words.update(word for word in _WORD.findall(block) if not word.isascii() and len(word) < KIB)
        searched += 1
    return words


def is_utf8(text: bytes) -> bool:
    """Whether these bytes are valid UTF-8."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


_MARK_BROKEN = "rowcall.mark_broken"
codecs.register_error(_MARK_BROKEN, lambda error: ("\udcff", cast("UnicodeDecodeError", error).end))


class Utf8Stream:
    """A text file of any encoding, read as UTF-8 bytes.

    Bytes that the encoding doesn't have come out as bytes that UTF-8 doesn't have, so that the record they stand in
    is found to be broken, on its line, like any other.
    """

    def __init__(self, file: BinaryIO, encoding: str) -> None:
        self._file = file
        self._decoder = None
        if encoding != "utf-8":
            self._decoder = codecs.getincrementaldecoder(encoding)(_MARK_BROKEN)

    def read(self, size: int) -> bytes:
        """Some bytes, about `size` of them; none at the end of the file."""
        if self._decoder is None:
            return self._file.read(size)
        while raw := self._file.read(max(size, 4)):
            text = self._decode(raw, final=False)
            if text:
                return text
        return self._decode(b"", final=True)

    def _decode(self, raw: bytes, *, final: bool) -> bytes:
        decoder = cast("codecs.IncrementalDecoder", self._decoder)
        return decoder.decode(raw, final).encode("utf-8", "surrogatepass")
