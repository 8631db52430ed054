/** Fewest columns that a cell is cut down to. */
const NARROWEST = 8;

/**
 * A table with lines around its cells, as tritonserver draws them. Cells that are too long for the width continue on
 * further lines.
 *
 * @param columns width that the table should fit, in characters
 */
export function textTable(
  titles: readonly string[],
  rows: readonly (readonly string[])[],
  columns: number,
): string {
  const longest = titles.map((title, column) =>
    Math.max(...[title, ...rows.map((row) => row[column] ?? "")].map((cell) => cell.length)),
  );
  // Each cell has a line and a space before it, and a space after it. A line ends the row.
  const widths = fittingWidths(longest, columns - 3 * titles.length - 1);
  const rule = `+${widths.map((width) => "-".repeat(width + 2)).join("+")}+`;
  const linesOf = (cells: readonly string[]): string[] => {
    const wrapped = widths.map((width, column) => wrap(cells[column] ?? "", width));
    const height = Math.max(...wrapped.map((lines) => lines.length));
    return Array.from({ length: height }, (_, line) => {
      return `|${widths.map((width, column) => ` ${(wrapped[column]![line] ?? "").padEnd(width)} `).join("|")}|`;
    });
  };
  return [rule, ...linesOf(titles), rule, ...rows.flatMap(linesOf), rule].join("\n");
}

/** Takes characters from the widest column until all columns together fit. */
function fittingWidths(longest: readonly number[], room: number): number[] {
  const widths = [...longest];
  for (;;) {
    const excess = widths.reduce((sum, width) => sum + width, 0) - room;
    const widest = Math.max(...widths);
    if (excess <= 0 || widest <= NARROWEST) return widths;
    const next = Math.max(NARROWEST, ...widths.filter((width) => width < widest));
    const column = widths.indexOf(widest);
    const shrunk = Math.max(widest - excess, next === widest ? widest - 1 : Math.min(next, widest - 1));
    widths[column] = Math.max(NARROWEST, shrunk);
  }
}

/** Breaks a text at spaces, and words that are longer than a line anywhere. */
function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    const joined = line === "" ? word : `${line} ${word}`;
    if (joined.length <= width) {
      line = joined;
      continue;
    }
    if (line !== "") lines.push(line);
    let rest = word;
    for (; rest.length > width; rest = rest.slice(width)) lines.push(rest.slice(0, width));
    line = rest;
  }
  return [...lines, line];
}
