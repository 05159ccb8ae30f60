// A click on a heading sorts its table by that column, a second click the other way round.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    const keyOf = (row) => {
      const cell = row.cells[column];
      if (!cell || cell.colSpan > 1) return "";
      return cell.dataset.sort ?? cell.textContent.trim();
    };
    button.addEventListener("click", () => {
      const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      const rows = [...body.rows].map((row, place) => ({row, place, key: keyOf(row)}));
      rows.sort((a, b) => {
        // What has no value comes last either way; what is equal stays as it stood.
        if (!a.key || !b.key) return !a.key - !b.key || a.place - b.place;
        const difference = a.key - b.key;
        const order = Number.isNaN(difference) ? a.key.localeCompare(b.key, "en", {numeric: true}) : difference;
        return sign * order || a.place - b.place;
      });
      body.append(...rows.map(({row}) => row));
      heads.forEach((each) => each.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
    });
  });
}
