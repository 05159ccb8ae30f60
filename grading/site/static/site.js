// What is wider than the screen can be scrolled from the keyboard as well.
"use strict";

function markWide() {
  const boxes = document.querySelectorAll(".math-block, .cell_output .output, .pst-scrollable-table-container, pre");
  for (const box of boxes) {
    if (box.scrollWidth > box.clientWidth) {
      box.setAttribute("tabindex", "0");
    }
  }
}

window.addEventListener("load", markWide);
window.addEventListener("resize", markWide);
