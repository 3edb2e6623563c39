"""The figures that show where a claim holds."""

from __future__ import annotations

from studies.module08.maps import BandPanel, VerdictMap, band_figure, verdict_maps


def test_verdicts_differ_without_their_colour() -> None:
    """A map writes every cell's numbers, hatches what is unclear, and names the three verdicts."""
    cells = [[("0.5", "yes"), ("0.9", "unclear"), ("2", "no")]]
    figure = verdict_maps([VerdictMap("t", "load", "chunk", ("0.1", "0.5", "1.2"), ("8",), cells)])
    assert [text.get_text() for text in figure.axes[0].texts] == ["0.5", "0.9", "2"]
    assert [patch.get_hatch() or "" for patch in figure.axes[0].patches] == ["", "///", ""]
    assert len(figure.legends[0].get_texts()) == 3


def test_an_interval_below_the_axis_is_an_arrow() -> None:
    """A bar that reaches 0 on a logarithmic axis ends at its edge with an arrow; others are drawn in full."""
    panel = BandPanel("t", "ratio", {"a": [(0.1, 2.0, 0.5), (1.0, 3.0, 9.0)]}, (3.0, 4.0))
    ax = band_figure([panel], xlabel="load", claimed="claimed").axes[0]
    arrows = [line.get_xdata().tolist() for line in ax.lines if line.get_marker() == 7]
    assert arrows == [[1.0]]
    low, high = ax.get_ylim()
    assert low < 1.5
    assert high > 12
