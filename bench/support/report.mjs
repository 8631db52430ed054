import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../scripts/run.mjs";
import { machineNote, saveResult } from "./save-result.mjs";

/**
 * Prints a table, saves it under `bench/results/`, and puts it with its plot into a document. After a benchmark with
 * `measured`, `npm run pictures` draws its pictures again.
 *
 * @param rows an object of columns by the name of the row
 * @param plots SVG documents by name
 * @param figures further figures for the JSON
 * @param measured figures that a picture of `scripts/pictures` draws
 * @param document file in `docs/` with markers for the table
 */
export function report(
  name,
  { rows, plots = {}, figures = {}, measured, note = "", document = "performance.md" },
) {
  console.table(rows);
  if (note !== "") console.log(note);
  saveResult(name, { rows, ...figures });
  if (process.env.BENCH_DOCS === "0") return;
  if (measured !== undefined) {
    const json = JSON.stringify({ machine: machineNote(), ...measured }, null, 2);
    writeFileSync(join(root, "scripts", "pictures", "measured", `${name}.json`), `${json}\n`);
  }
  const folder = join(root, "docs", "performance");
  mkdirSync(folder, { recursive: true });
  const images = Object.entries(plots).map(([word, svg]) => {
    const file = `${[name, word].filter((part) => part !== "").join("-")}.svg`;
    writeFileSync(join(folder, file), svg);
    return `![${file.replace(".svg", "")}](performance/${file})`;
  });
  const parts = [markdownTable(rows), note, ...images, `Measured on ${machineNote()}.`];
  replaceSection(document, name, parts.filter((part) => part !== "").join("\n\n"));
}

function markdownTable(rows) {
  const columns = [...new Set(Object.values(rows).flatMap(Object.keys))];
  const line = (cells) => `| ${cells.join(" | ")} |`;
  const body = Object.entries(rows).map(([name, row]) =>
    line([name, ...columns.map((column) => row[column] ?? "")]),
  );
  return [line(["case", ...columns]), line(["---", ...columns.map(() => "---:")]), ...body].join("\n");
}

/** Replaces the text between the two markers of a benchmark. */
function replaceSection(file, name, text) {
  const path = join(root, "docs", file);
  const [start, end] = [`<!-- bench ${name} -->`, `<!-- end of bench ${name} -->`];
  const document = readFileSync(path, "utf8");
  const [from, to] = [document.indexOf(start), document.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`docs/${file} has no place for ${name}`);
  const before = document.slice(0, from + start.length);
  writeFileSync(path, `${before}\n\n${text}\n\n${document.slice(to)}`);
}
