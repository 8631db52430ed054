import { COMPARED_LOAD, type Comparison, type Duel } from "./compare.js";

const COLUMNS = [
  "case",
  "one by one",
  "eager",
  "10 ms delay",
  "best fixed",
  "adaptive",
  "ratio",
  "machine time",
];

/** The comparisons as a table in Markdown. */
export function table(comparisons: readonly Comparison[]): string {
  const rows = comparisons.map((one) => {
    const { oneByOne, eager, delayed } = one.others;
    return [one.scenario.name, ...[oneByOne, eager, delayed].map(whole), ...duelCells(one)];
  });
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [line(COLUMNS), line(COLUMNS.map((_, i) => (i === 0 ? "---" : "--:"))), ...rows.map(line)].join(
    "\n",
  );
}

/** The cells of a row about adaptive batching and the best fixed setting. */
export function duelCells({ bestFixed, rates, busy }: Duel): string[] {
  return [
    `${whole(rates.bestFixed)} (${bestFixed.name})`,
    whole(rates.adaptive),
    (rates.adaptive / rates.bestFixed).toFixed(2),
    `${percent(busy.bestFixed)} -> ${percent(busy.adaptive)}`,
  ];
}

/** Explanation of the table. */
export const CAPTION =
  "Requests per second of which 99% are answered in time, and the share of the time that the instances work at " +
  `${percent(COMPARED_LOAD)} of the best fixed setting's rate (best fixed -> adaptive).`;

function whole(value: number): string {
  return String(Math.round(value));
}

function percent(share: number): string {
  return `${Math.round(100 * share)}%`;
}
