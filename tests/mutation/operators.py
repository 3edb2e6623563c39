"""Small faults that can be put into a source text, one at a time.

Only code inside functions is changed: a mutant replaces the code of functions that are already imported. Messages of
errors, annotations, decorators and default values stay as they are.
"""

from __future__ import annotations

import ast
import difflib
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

OTHER_COMPARISONS: dict[type[ast.cmpop], tuple[str, tuple[str, ...]]] = {
    ast.Lt: ("<", ("<=", ">=")),
    ast.LtE: ("<=", ("<", ">")),
    ast.Gt: (">", (">=", "<=")),
    ast.GtE: (">=", (">", "<")),
    ast.Eq: ("==", ("!=",)),
    ast.NotEq: ("!=", ("==",)),
    ast.Is: ("is", ("is not",)),
    ast.IsNot: ("is not", ("is",)),
    ast.In: ("in", ("not in",)),
    ast.NotIn: ("not in", ("in",)),
}
OTHER_ARITHMETIC: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "*"),
    ast.Pow: ("**", "*"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
}
OTHER_CALLS = {"min": "max", "max": "min", "any": "all", "all": "any"}


@dataclass(frozen=True)
class Mutant:
    """One changed place of one file: bytes `start` to `end` become `text`."""

    path: Path
    line: int
    kind: str
    start: int
    end: int
    text: str
    function: tuple[str, int]
    """Qualified name and first line of the outermost function around the place."""

    def source(self) -> str:
        """Return the changed source text."""
        original = self.path.read_bytes()
        return (original[: self.start] + self.text.encode() + original[self.end :]).decode()

    def diff(self, root: Path) -> str:
        """Return the change as a unified diff with one line of context."""
        name = str(self.path.relative_to(root))
        before, after = self.path.read_text(encoding="utf-8").splitlines(), self.source().splitlines()
        return "\n".join(difflib.unified_diff(before, after, name, f"{name} ({self.kind})", lineterm="", n=1))


def mutants_of(path: Path) -> list[Mutant]:
    """Return all mutants of a file, in order of place."""
    source = path.read_bytes()
    finder = _Finder(path, source)
    finder.visit(ast.parse(source))
    return sorted(finder.found, key=lambda mutant: (mutant.start, mutant.end, mutant.text))


class _Finder(ast.NodeVisitor):
    """Walks a module and collects its mutants."""

    def __init__(self, path: Path, source: bytes) -> None:
        self.path = path
        self.source = source
        self.line_starts = [0, *accumulate(len(line) for line in source.splitlines(keepends=True))]
        self.names: list[str] = []
        self.function: tuple[str, int] | None = None
        self.found: list[Mutant] = []

    # -- which places count ----------------------------------------------------------------------------------------

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.names.append(node.name)
        for child in node.body:
            self.visit(child)
        self.names.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        outermost = self.function is None
        if outermost:
            first_line = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            self.function = (".".join([*self.names, node.name]), first_line)
        for child in node.body:
            self.visit(child)
        if outermost:
            self.function = None

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._drop_if_stored(node, [node.target])
            self.visit(node.value)

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg != "strict":  # of zip: what it forbids does not happen
            self.visit(node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Texts stay as they are."""

    def visit_Raise(self, node: ast.Raise) -> None:
        if not (isinstance(node.exc, ast.Name) and node.exc.id == "NotImplementedError"):  # an abstract method
            self._replace(node, "pass", "dropped raise")

    # -- changes -----------------------------------------------------------------------------------------------------

    def visit_Compare(self, node: ast.Compare) -> None:
        operands = [node.left, *node.comparators]
        for left, operator, right in zip(operands, node.ops, operands[1:], strict=False):
            written, others = OTHER_COMPARISONS[type(operator)]
            for other in others:
                self._replace_between(left, right, written, other, "comparison")
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        written, other = OTHER_ARITHMETIC.get(type(node.op), ("", ""))
        if written:
            self._replace_between(node.left, node.right, written, other, "arithmetic")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        written, other = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            self._replace_between(left, right, written, other, "boolean operator")
        for operand in node.values:
            self._replace(operand, str(isinstance(node.op, ast.And)), "dropped condition")
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not | ast.USub):
            self._replace(node, f"({self._text(node.operand)})", "dropped sign")
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._replace(node, str(not node.value), "constant")
        elif isinstance(node.value, int | float):
            self._replace(node, repr(node.value + 1), "constant")

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and node.func.id in OTHER_CALLS:
            self._replace(node.func, OTHER_CALLS[node.func.id], "other function")
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is None:
            return
        if not isinstance(node.value, ast.Constant):
            self._replace(node.value, "None", "return value")
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            text = self._text(node)  # a method without super() would need another closure: it stays in the text
            self._replace(node, f"False and {text}" if "super()" in text else "pass", "dropped call")
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        self._drop_if_stored(node, node.targets)
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        written, other = OTHER_ARITHMETIC.get(type(node.op), ("", ""))
        if written:
            self._replace_between(node.target, node.value, f"{written}=", f"{other}=", "arithmetic")
        self._replace(node, "pass", "dropped statement")
        self.generic_visit(node)

    def visit_Delete(self, node: ast.Delete) -> None:
        self._replace(node, "pass", "dropped statement")

    def visit_Continue(self, node: ast.Continue) -> None:
        self._replace(node, "break", "loop")

    def visit_Break(self, node: ast.Break) -> None:
        self._replace(node, "continue", "loop")

    # -- writing them down -------------------------------------------------------------------------------------------

    def _negate(self, test: ast.expr) -> None:
        """Negate a condition that has no operator of its own to change."""
        if not isinstance(test, ast.Compare | ast.BoolOp | ast.UnaryOp):
            self._replace(test, f"(not ({self._text(test)}))", "negated condition")

    def _drop_if_stored(self, node: ast.stmt, targets: list[ast.expr]) -> None:
        """Drop what is stored in an object; a dropped local variable would only be a NameError."""
        if any(isinstance(target, ast.Attribute | ast.Subscript) for target in targets):
            self._replace(node, "pass", "dropped statement")

    def _offset(self, line: int, column: int) -> int:
        return self.line_starts[line - 1] + column

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._offset(node.lineno, node.col_offset), self._offset(node.end_lineno, node.end_col_offset)

    def _text(self, node: ast.expr | ast.stmt) -> str:
        start, end = self._span(node)
        return self.source[start:end].decode()

    def _replace(self, node: ast.expr | ast.stmt, text: str, kind: str) -> None:
        start, end = self._span(node)
        self._add(node.lineno, kind, start, end, text)

    def _replace_between(self, left: ast.expr, right: ast.expr, written: str, other: str, kind: str) -> None:
        """Replace an operator, which stands between its operands and perhaps brackets."""
        begin, end = self._span(left)[1], self._span(right)[0]
        start = self.source.find(written.encode(), begin, end)
        if start >= 0:
            self._add(right.lineno, kind, start, start + len(written), other)

    def _add(self, line: int, kind: str, start: int, end: int, text: str) -> None:
        if self.function is not None:
            self.found.append(Mutant(self.path, line, kind, start, end, text, self.function))
