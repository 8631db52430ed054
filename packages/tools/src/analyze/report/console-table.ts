import { duration } from "../../report/number-texts.js";
import {
  type AnalysisOutcome,
  candidateName,
  listed,
  type RankedResult,
  rankAgreement,
  totalsOf,
} from "../outcome.js";
import {
  candidateText,
  estimateText,
  shortNumber,
  signedPercent,
  throughputGain,
  verdictText,
} from "./result-cells.js";

const WIDTH = 80;

/** The result for a terminal of 80 columns: a table of the best configurations and the default, and a verdict. */
export function consoleTable(outcome: AnalysisOutcome, count: number): string {
  const rows = listed(outcome, count);
  const hasSimulation = rows.some(({ simulated }) => simulated !== undefined);
  const simulation = hasSimulation ? ["simulated", "estimate"] : [];
  const header = ["variant", "infer/s", "p99 ms", "MB", "gain", ...simulation, ""];
  const cells = rows.map((row) => cellsOf(row, outcome, hasSimulation));
  const widths = header.map((cell, i) => Math.max(cell.length, ...cells.map((row) => row[i]!.length)));
  const lines = [header, ...cells].map((row) =>
    row
      .map((cell, i) => (i === 0 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!)))
      .join("  ")
      .trimEnd(),
  );
  const { pairs, share } = rankAgreement(outcome);
  const texts = [
    verdictText(outcome),
    ...rows.map(
      ({ result }) => `${shortName(result.number)}: ${candidateText(result)} (${candidateName(result)})`,
    ),
    ...(pairs > 0
      ? [
          `The simulation has ${Math.round(share * 100)}% of ${pairs} pairs of measured configurations in the ` +
            "measured order.",
        ]
      : []),
    ...outcome.failed.map(
      (result) =>
        `Skipped ${candidateName(result)} (${candidateText(result)}): ${result.fault ?? "no measurement"}`,
    ),
    `${outcome.measurements} measurement${outcome.measurements === 1 ? "" : "s"} in ${duration(outcome.elapsedMs)}` +
      `${outcome.endedBy === undefined ? "." : `; the search ended early: ${ENDS[outcome.endedBy]}.`}`,
  ];
  return `${[...lines, "", ...texts.flatMap(wrapped)].join("\n")}\n`;
}

const ENDS = { interrupted: "it was interrupted", budget: "its budget is used up" } as const;

const shortName = (number: number | undefined) => (number === undefined ? "default" : `config_${number}`);

function cellsOf(row: RankedResult, outcome: AnalysisOutcome, hasSimulation: boolean): string[] {
  const { throughput, p99Ms, memory } = totalsOf(row.run);
  const { simulated } = row;
  return [
    shortName(row.result.number),
    shortNumber(throughput),
    shortNumber(p99Ms),
    shortNumber(memory),
    signedPercent(throughputGain(row, outcome)),
    ...(hasSimulation
      ? [
          simulated === undefined
            ? "-"
            : `#${simulated.rank}, ${shortNumber(totalsOf(simulated.run).throughput)}`,
          estimateText(row),
        ]
      : []),
    row.breaches.length > 0 ? "misses" : "",
  ];
}

/** Lines of at most 80 columns. Lines after the first are indented. */
function wrapped(text: string): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > WIDTH) {
      lines.push(line);
      line = `  ${word}`;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line];
}
