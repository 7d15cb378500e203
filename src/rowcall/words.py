"""Numbers with their noun, as people say them."""


def counted(number: int, one: str, several: str | None = None) -> str:
    """`1 row`, `2,000 rows`: a number with what it counts. `several` where more of it takes more than an s."""
    return f"{number:,} {one if number == 1 else several or f'{one}s'}"
