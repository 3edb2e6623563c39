"""Files compressed with gzip or Zstandard, read as what is in them, within limits on the size of that."""

from __future__ import annotations

import gzip
import io
import zlib
from typing import Any, BinaryIO, Final

from simqueue.datafiles.regular import AT_ONCE, Budget, UnreadableError

_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_REPACK: Final = "unpack it, or compress it with gzip or zstd"
_OTHER: Final = (
    (b"BZh", f"this is a bzip2 file; {_REPACK}"),
    (b"\xfd7zXZ", f"this is an xz file; {_REPACK}"),
    (b"PK\x03\x04", f"this is a zip file; {_REPACK}"),
    (b"PAR1", "this is a Parquet file, not text"),
)


def unpacked(opened: io.BufferedReader, budget: Budget) -> io.BufferedReader:
    """Return the bytes of a file, or those that it has compressed; what it is, its first bytes say, not its name.

    Parameters
    ----------
    opened : io.BufferedReader
        The file, at its beginning.
    budget : Budget
        Limits of the bytes that are returned.

    Raises
    ------
    UnreadableError
        At once if another program has compressed the file; while it is read, if it is damaged, ends too early, or has
        more than the budget.
    """
    start = opened.peek(8)
    for mark, told in _OTHER:
        if start.startswith(mark):
            opened.close()
            raise UnreadableError(told)
    stream: Any = opened
    if start.startswith(_GZIP):
        stream = gzip.GzipFile(fileobj=opened)
    elif start.startswith(_ZSTD):
        stream = _zstd(opened)
    return io.BufferedReader(_Counted(stream, opened, budget), AT_ONCE)


def _zstd(opened: BinaryIO) -> Any:
    import pyarrow as pa  # noqa: PLC0415 - most files are not compressed, and it is large

    return pa.CompressedInputStream(pa.PythonFile(opened, "r"), "zstd")


class _Counted(io.RawIOBase):
    """A stream, made from an open file, whose bytes are counted."""

    def __init__(self, stream: Any, opened: BinaryIO, budget: Budget) -> None:
        super().__init__()
        self._stream = stream
        self._opened = opened
        self._budget = budget

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read bytes into a buffer and return how many."""
        try:
            piece = self._stream.read(len(buffer))
        except UnreadableError:
            raise
        except (EOFError, OSError, zlib.error) as error:
            raise UnreadableError(f"the compressed data is damaged or incomplete ({error})") from None
        self._budget.take(piece)
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        """Close the stream and the file; a stream of gzip leaves its file open."""
        self._stream.close()
        self._opened.close()
        super().close()
