/* Rates beside tritonserver, from the table of docs/performance.md. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { drawRatios } from "../../bench/support/plots.mjs";
import { root } from "../run.mjs";

/** Draws the median, the least and the most of the figures in each cell of rates. */
export function drawBesideTritonserver() {
  const page = readFileSync(join(root, "docs", "performance.md"), "utf8");
  const [, table] = /^<!-- beside tritonserver -->\s+(.*?)\s+<!-- end/ms.exec(page);
  const [, , ...rows] = table
    .split("\n")
    .map((row) => row.split(" | ").map((cell) => cell.replace(/^\| /, "")));
  const ratios = rows.flatMap(([work, ...rates]) =>
    ["HTTP", "gRPC"].map((transport, i) => {
      const sorted = rates[i]
        .match(/[\d.]+/g)
        .map(Number)
        .sort((a, b) => a - b);
      const middle = sorted.slice(Math.ceil(sorted.length / 2) - 1, Math.floor(sorted.length / 2) + 1);
      const ratio = middle.reduce((sum, one) => sum + one, 0) / middle.length;
      return { label: `${work}, ${transport}`, ratio, least: sorted[0], most: sorted.at(-1) };
    }),
  );
  return drawRatios(
    "Rate of tritonjs serve divided by that of tritonserver 2.59 (above 1: tritonjs is ahead)",
    ratios,
  );
}
