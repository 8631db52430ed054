/** A table with lines around its cells, as tritonserver draws them. */
export function table(titles: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = titles.map((title, column) =>
    Math.max(...[title, ...rows.map((row) => row[column] ?? "")].map((cell) => cell.length)),
  );
  const rule = `+${widths.map((width) => "-".repeat(width + 2)).join("+")}+`;
  const line = (cells: readonly string[]) =>
    `|${widths.map((width, column) => ` ${(cells[column] ?? "").padEnd(width)} `).join("|")}|`;
  return [rule, line(titles), rule, ...rows.map(line), rule].join("\n");
}
