"""Tables on the terminal."""

from rich.box import SIMPLE_HEAD
from rich.table import Table


def titled_table(title: str, names: int, *columns: str) -> Table:
    """A table whose first columns are names, the others numbers."""
    table = Table(title=title, box=SIMPLE_HEAD, padding=(0, 1, 0, 0), title_justify="left", title_style="bold")
    for place, column in enumerate(columns):
        table.add_column(column, justify="left" if place < names else "right", max_width=44)
    return table
