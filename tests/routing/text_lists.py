"""A tree of texts by plain lists of strings, as slow and as clear as can be."""

from __future__ import annotations

from typing import Any

from simqueue.routing.texts import Text


def shared(one: str, other: str) -> int:
    """Return with how many equal characters two texts begin."""
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


class Lists:
    """The same by lists of strings: each node is the text up to its end, and where it begins."""

    def __init__(self) -> None:
        self.nodes: list[dict[str, Any]] = []
        self.time = 0

    def insert(self, text: str, owner: int) -> None:
        """Cut every node in which `text` parts, use those that it covers, and add the rest."""
        self.time += 2
        covered = 0
        for node in list(self.nodes):
            common = shared(node["end"], text)
            if node["begin"] < common < len(node["end"]):
                self.nodes.append({**node, "end": text[:common], "uses": dict(node["uses"])})
                node["begin"] = common
            covered = max(covered, common)
        if covered < len(text):
            self.nodes.append({"begin": covered, "end": text, "uses": {}, "creator": owner})
        for node in self.nodes:
            if text.startswith(node["end"]):
                node["uses"][owner] = self.time

    def find(self, text: str) -> tuple[int, dict[str, Any] | None]:
        """Return the longest common beginning, and the node with its last character."""
        matched = max((shared(node["end"], text) for node in self.nodes), default=0)
        reached = [
            node
            for node in self.nodes
            if node["begin"] < matched <= len(node["end"]) and self.same(node, text, matched)
        ]
        return matched, reached[0] if matched else None

    @staticmethod
    def same(node: dict[str, Any], text: str, matched: int) -> bool:
        """Return whether a node has the first characters of a text."""
        return bool(node["end"][:matched] == text[:matched])

    def touch(self, text: str, owner: int) -> None:
        """Use all that a look-up of `text` meets, if the owner has its end."""
        matched, reached = self.find(text)
        if reached is None or owner not in reached["uses"]:
            return
        for node in self.nodes:
            if node["begin"] < matched and self.same(node, text, min(matched, len(node["end"]))):
                node["uses"][owner] = self.time + 1

    def remove(self, owner: int) -> None:
        """Take everything from an owner."""
        for node in self.nodes:
            node["uses"].pop(owner, None)
        self.nodes = [node for node in self.nodes if node["uses"]]

    def evict(self, most: int) -> None:
        """Take the least recently used leaf of an owner, as long as it has too much."""
        for owner in dict.fromkeys(owner for node in self.nodes for owner in node["uses"]):
            while self.size(owner) > most:
                own = [node for node in self.nodes if owner in node["uses"]]
                leaves = [node for node in own if not any(self.below(one, node) for one in own)]
                del min(leaves, key=lambda node: node["uses"][owner])["uses"][owner]
                self.nodes = [node for node in self.nodes if node["uses"]]

    @staticmethod
    def below(one: dict[str, Any], node: dict[str, Any]) -> bool:
        """Return whether a node is below another."""
        return one is not node and one["begin"] >= len(node["end"]) and one["end"].startswith(node["end"])

    def size(self, owner: int) -> int:
        """Return the characters of an owner."""
        return sum(len(node["end"]) - node["begin"] for node in self.nodes if owner in node["uses"])


def plain(text: Text) -> str:
    """Return one character for each stream and position."""
    return "".join(chr(1000 * int(stream) + at) for stream, start, n in text for at in range(start, start + n))
