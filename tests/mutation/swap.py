"""Puts a mutant into functions that are already imported, by giving them other code."""

from __future__ import annotations

import gc
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import CodeType, FunctionType

from .operators import Mutant

Place = tuple[str, str, int]
"""File, qualified name and first line of a function."""


class Loaded:
    """The imported functions of some source files."""

    def __init__(self, files: Iterable[Path]) -> None:
        names = {str(file) for file in files}
        self._functions: defaultdict[Place, list[FunctionType]] = defaultdict(list)
        for one in gc.get_objects():
            if type(one) is FunctionType and one.__code__.co_filename in names:
                self._functions[_place(one.__code__)].append(one)

    def put(self, mutant: Mutant) -> None:
        """Change the function, everywhere it is used."""
        place = (str(mutant.path), *mutant.function)
        changed = next(code for code in _codes(mutant.source(), mutant.path) if _place(code) == place)
        for function in self._functions[place]:
            function.__code__ = changed


def _place(code: CodeType) -> Place:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def _codes(source: str, path: Path) -> Iterator[CodeType]:
    """Yield the code of all functions and classes of a source text."""
    codes = [compile(source, str(path), "exec", dont_inherit=True)]
    while codes:
        inner = [constant for constant in codes.pop().co_consts if isinstance(constant, CodeType)]
        yield from inner
        codes += inner
