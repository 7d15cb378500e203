"""Files that are read once, when they have come whole, and kept nowhere."""

import tempfile

from rowcall.store.files.filestore import Incoming


class PassingStore:
    """Takes files as a file store does, into temporary ones; each is gone when it is closed."""

    def begin(self, *, most: int | None = None) -> Incoming:
        """A file is about to come."""
        return _Passing(most)


class _Passing(Incoming):
    def __init__(self, most: int | None) -> None:
        super().__init__(most)
        self._file = tempfile.NamedTemporaryFile(prefix="rowcall-")  # noqa: SIM115 (closed in close)

    def _put(self, piece: bytes) -> None:
        self._file.write(piece)

    def _settle(self, sha256: str) -> str:  # noqa: ARG002 (it is not kept by its content)
        self._file.flush()
        return self._file.name

    def _put_back(self, known: str) -> str:
        return known

    def close(self) -> None:
        self._file.close()
