"""Encodings: found, overridden, and wrong bytes on their own line."""

from pathlib import Path

import pytest

from rowcall.errors import FileRefused
from rowcall.formats import ReadOptions
from rowcall.model import Code

from ..reading import read

# Names as they stand in address lists: few words, and most of each file is ASCII.
WORDS = {
    "German": "Müller Straße Köln Zürich Österreich grün Jürgen Bäcker",
    "French": "Élodie François Hélène café Besançon Évreux Noël garçon",
    "Spanish": "Peña Muñoz José María Ángel Córdoba Ibáñez Año",
    "Portuguese": "São Paulo João Conceição Brasília Gonçalves ação",
    "Polish": "Łódź Gdańsk Kraków Wrocław Żółć Świętokrzyskie Poznań",
    "Czech": "Příliš žluťoučký kůň Dvořák Brno Plzeň České Budějovice",
    "Hungarian": "Győr Székesfehérvár Őrség Űr Pécs Kővári",
    "Russian": "Москва Иванов Санкт-Петербург данные Новосибирск",
    "Ukrainian": "Київ Львів Їжак Одеса Харків Євген",
    "Greek": "Αθήνα Θεσσαλονίκη Γιώργος Πάτρα",
    "Turkish": "İstanbul Şişli Çağrı Güneş Muğla Ağrı",
    "Hebrew": "ירושלים תל אביב חיפה שלום",
    "Arabic": "القاهرة دمشق محمد أحمد",
    "Latvian": "Rīga Liepāja Jēkabpils Šķūnis Ņina",
    "Japanese": "東京 大阪 山田太郎 データ テスト 株式会社",
    "Chinese": "北京 上海 数据 测试 有限公司",
    "Taiwanese": "臺北 高雄 資料 測試 公司",
    "Korean": "서울 부산 데이터 홍길동",
    "Thai": "กรุงเทพ เชียงใหม่ ข้อมูล",
}
CASES = [
    *(("German", e) for e in ("cp1252", "iso8859-15", "cp850", "mac-roman", "utf-8", "utf-16", "utf-32")),
    *(("French", e) for e in ("cp1252", "cp850", "mac-roman", "utf-8-sig")),
    *(("Spanish", e) for e in ("cp1252", "mac-roman")),
    *(("Portuguese", e) for e in ("cp1252", "cp850")),
    *(("Polish", e) for e in ("cp1250", "iso8859-2", "cp852")),
    *(("Czech", e) for e in ("cp1250", "cp852")),
    *(("Hungarian", e) for e in ("cp1250", "iso8859-2")),
    *(("Russian", e) for e in ("cp1251", "koi8-r", "cp866", "utf-16-le", "utf-8")),
    *(("Ukrainian", e) for e in ("cp1251", "koi8-u")),
    *(("Greek", "cp1253"), ("Turkish", "cp1254"), ("Hebrew", "cp1255"), ("Arabic", "cp1256"), ("Latvian", "cp1257")),
    *(("Japanese", "cp932"), ("Japanese", "euc-jp"), ("Chinese", "gb18030"), ("Taiwanese", "big5")),
    ("Korean", "cp949"),
    ("Thai", "cp874"),
]


@pytest.mark.parametrize(("language", "encoding"), CASES)
def test_the_encoding_is_found_from_a_handful_of_names(tmp_path: Path, language: str, encoding: str) -> None:
    words = WORDS[language].split()
    path = tmp_path / "x.csv"
    path.write_bytes("".join(["id,name\n", *(f"{i},{w}\n" for i, w in enumerate(words))]).encode(encoding))
    assert [name for _, name in read(path).values] == words


def test_an_accent_far_down_still_decides(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b"id,name\n" + b"1,plain\n" * 200_000 + "2,Müller\n3,Straße\n".encode("cp1252"))
    got = read(path)
    assert got.values[-2:] == [("2", "Müller"), ("3", "Straße")]
    assert "ENCODING_GUESSED" in got.notes


def test_a_given_encoding_is_used(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes("id,name\n1,Žižka\n".encode("cp1250"))
    assert read(path, ReadOptions(encoding="windows-1250")).values == [("1", "Žižka")]
    path.write_bytes("id,name\n1,x\n".encode("utf-16"))
    assert read(path, ReadOptions(encoding="utf-16")).values == [("1", "x")]


@pytest.mark.parametrize("name", ["utf-7", "punycode", "hex", "klingon", ""])
def test_what_is_no_text_encoding_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(FileRefused) as refusal:
        read(path, ReadOptions(encoding=name))
    assert refusal.value.code == Code.UNKNOWN_ENCODING


@pytest.mark.parametrize(
    ("encoding", "broken"),
    [("utf-16-le", b"\x00\xd8\x20\x00"), ("cp932", b"\x81\x20"), ("cp1252", b"\x81"), ("utf-8", b"\xed\xa0\x80")],
)
def test_bytes_that_the_encoding_lacks_fail_their_own_record(tmp_path: Path, encoding: str, broken: bytes) -> None:
    path = tmp_path / "x.csv"
    before, after = "a,b\n1,".encode(encoding), "\n2,ok\n".encode(encoding)
    path.write_bytes(before + broken + after)
    got = read(path, ReadOptions(encoding=encoding))
    assert [(b.line, b.code) for b in got.bad] == [(2, Code.INVALID_ENCODING)]
    assert got.values == [("2", "ok")]
