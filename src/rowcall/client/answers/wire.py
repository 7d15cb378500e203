"""What all answers have in common."""

from msgspec import Struct


class Wire(Struct, rename="camel", frozen=True):
    """Names in camelCase on the wire. States and statuses are texts: a newer server may have more of them."""
