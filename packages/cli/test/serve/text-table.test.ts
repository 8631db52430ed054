import { expect, it } from "vitest";
import { textTable } from "../../src/serve/serve.js";

const widthOf = (table: string) => Math.max(...table.split("\n").map((line) => line.length));

it("a table that fits looks as in tritonserver", () => {
  expect(textTable(["Model", "Version"], [["resnet", "1"], ["b"]], 80)).toBe(
    [
      "+--------+---------+",
      "| Model  | Version |",
      "+--------+---------+",
      "| resnet | 1       |",
      "| b      |         |",
      "+--------+---------+",
    ].join("\n"),
  );
});

it("a long reason continues on further lines within the width", () => {
  const reason = `UNAVAILABLE: Internal: failed to stat file ${"/very/long/path".repeat(8)} in the repository`;
  const table = textTable(["Model", "Version", "Status"], [["resnet", "1", reason]], 80);
  expect(widthOf(table)).toBe(80);
  const cells = table.split("\n").map((line) => line.split("|")[3]?.trim() ?? "");
  expect(cells.join("").replaceAll(" ", "")).toContain(reason.replaceAll(" ", ""));
  expect(table.split("\n")[4]).toMatch(/^\| {8}\| {9}\| \S/);
});

it.each([
  ["a".repeat(200), "b".repeat(200), "c".repeat(200)],
  ["short", "b".repeat(100), "c c ".repeat(40)],
  ["x".repeat(76), "1", "READY"],
])("long cells of any column fit: %s", (...row) => {
  const table = textTable(["Model", "Version", "Status"], [row], 80);
  expect(widthOf(table)).toBeLessThanOrEqual(80);
  for (const [index, cell] of row.entries()) {
    const column = table.split("\n").map((line) => line.split("|")[index + 1]?.trim() ?? "");
    expect(column.join("").replaceAll(" ", "")).toContain(cell.replaceAll(" ", ""));
  }
});

it("columns are not cut below eight characters, however narrow the terminal is", () => {
  expect(widthOf(textTable(["Model", "Version", "Status"], [["a".repeat(99), "1", "READY"]], 5))).toBe(31);
});
