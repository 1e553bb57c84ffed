"""A few shapes as SVG text: small, readable in a diff, and the same bytes every time."""

from xml.sax.saxutils import escape

__all__ = ["Svg"]


class Svg:
    """A drawing of ``width`` x ``height`` pixels; shapes are added in painting order."""

    def __init__(self, width, height, title):
        self.width, self.height, self.title = width, height, title
        self.shapes = []

    def rect(self, x, y, width, height, fill="#ffffff", stroke="#333333", radius=4, line=1):
        """A rectangle."""
        self.shapes.append(f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{radius:g}" '
                           f'fill="{fill}" stroke="{stroke}" stroke-width="{line:g}"/>')

    def text(self, x, y, text, size=12, bold=False, anchor="middle", fill="#111111"):
        """One line of text; ``y`` is its baseline."""
        weight = ' font-weight="bold"' if bold else ""
        self.shapes.append(f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" text-anchor="{anchor}" '
                           f'fill="{fill}"{weight}>{escape(text)}</text>')

    def box(self, x, y, width, height, title, *lines, fill="#ffffff"):
        """A rectangle with a bold title and lines of text, centred."""
        self.rect(x, y, width, height, fill)
        first = y + height / 2 - 7 * len(lines) + 4
        self.text(x + width / 2, first, title, bold=True)
        for i, line in enumerate(lines):
            self.text(x + width / 2, first + 14 * (i + 1), line, size=11)

    def arrow(self, *points, label=None, at=None, anchor="middle"):
        """A polyline through ``points`` with an arrow head; ``label`` at the point ``at``."""
        path = " ".join(f"{x:g},{y:g}" for x, y in points)
        self.shapes.append(f'<polyline points="{path}" fill="none" stroke="#333333" stroke-width="1.5" '
                           f'marker-end="url(#head)"/>')
        if label is not None:
            self.text(*at, label, size=11, anchor=anchor)

    def render(self):
        """The SVG document."""
        head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" '
                f'width="{self.width}" height="{self.height}" font-family="sans-serif">\n'
                f"<title>{escape(self.title)}</title>\n"
                '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
                'orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#333333"/></marker></defs>\n'
                f'<rect width="{self.width}" height="{self.height}" fill="#ffffff"/>\n')
        return head + "\n".join(self.shapes) + "\n</svg>\n"
