"""How well a text can be told from its ground, as WCAG 2 defines it, of every text that a part of a page shows.

It reads the colours that the browser has worked out, semi-transparent ones and gradients of one colour included. What a
picture holds it does not see, nor the `title` of a shape in an SVG, which the browser shows in colours of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from playwright.sync_api import Locator

AA, AA_LARGE = 4.5, 3.0
"""The least contrast of a text; of one that is large (24 px, or 18.7 px and bold) or that is a sign beside a text."""

_SHOWN_TEXTS = """
root => {
  const channels = text => {
    const found = (text || '').match(/rgba?\\(([^)]+)\\)/);
    if (!found) return null;
    const [r, g, b, a] = found[1].split(/[,/ ]+/).map(Number);
    return [r, g, b, a === undefined || Number.isNaN(a) ? 1 : a];
  };
  const over = (top, below) => [0, 1, 2].map(i => top[3] * top[i] + (1 - top[3]) * below[i]).concat(1);
  const groundOf = element => {
    const layers = [];
    for (let one = element; one; one = one.parentElement) {
      const style = getComputedStyle(one);
      const tint = channels(style.backgroundImage), colour = channels(style.backgroundColor);
      if (tint) layers.push(tint);
      if (colour && colour[3] > 0) layers.push(colour);
      if (colour && colour[3] === 1) break;
    }
    return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 1]);
  };
  const luminance = colour => {
    const [r, g, b] = colour.slice(0, 3).map(value => {
      const share = value / 255;
      return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const found = [];
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.textContent.trim(), element = walker.currentNode.parentElement;
    const style = getComputedStyle(element);
    if (!text || ['STYLE', 'SCRIPT', 'title'].includes(element.tagName) || style.visibility === 'hidden') continue;
    const ground = groundOf(element);
    const ink = channels(element.namespaceURI.endsWith('svg') ? style.fill : style.color);
    const [dark, light] = [luminance(over(ink, ground)), luminance(ground)].sort((a, b) => a - b);
    const size = parseFloat(style.fontSize), bold = parseInt(style.fontWeight) >= 600;
    found.push({text, contrast: (light + 0.05) / (dark + 0.05), large: size >= 24 || (size >= 18.6 && bold)});
  }
  return found;
}
"""


@dataclass(frozen=True)
class Shown:
    """A text and its contrast to its ground, from 1 to 21."""

    text: str
    contrast: float
    large: bool

    @property
    def needed(self) -> float:
        """AA; less for a lone sign such as the tick of a verdict, whose colour says what its text says too."""
        return AA_LARGE if self.large or len(self.text) == 1 else AA


def texts_in(part: Locator) -> list[Shown]:
    """Every text in this part of a page, in the order of the page."""
    return [Shown(**one) for one in part.evaluate(_SHOWN_TEXTS)]


def too_faint(part: Locator) -> list[str]:
    """The texts whose contrast is below what they need, with it."""
    return [f"{one.contrast:.2f}: {one.text}" for one in texts_in(part) if one.contrast < one.needed]
