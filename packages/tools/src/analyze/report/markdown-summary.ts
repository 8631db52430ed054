import { duration } from "../../report/number-texts.js";
import { variantName } from "../candidate-result.js";
import { type AnalysisOutcome, listed, rankAgreement } from "../outcome.js";
import {
  candidateText,
  estimateText,
  shapeOf,
  shortNumber,
  signedPercent,
  throughputGain,
  verdictText,
} from "./result-cells.js";

/** A summary with Model Analyzer's columns, one table for each model that got load. */
export function markdownSummary(outcome: AnalysisOutcome, count: number): string {
  const tables = outcome.models.map((model) => modelTable(outcome, model, count));
  const { pairs, share } = rankAgreement(outcome);
  const simulation =
    pairs === 0
      ? []
      : [
          `The simulation has ${Math.round(share * 100)}% of ${pairs} pairs of measured configurations in the measured order.`,
        ];
  const skipped = outcome.failed.map(
    (result) => `- ${escapeCell(candidateText(result))}: ${escapeCell(result.fault ?? "no measurement")}`,
  );
  return [
    `# Configurations of ${outcome.models.join(", ")}`,
    verdictText(outcome),
    ...tables,
    ...simulation,
    ...(skipped.length === 0 ? [] : ["## Skipped configurations", skipped.join("\n")]),
    `${outcome.measurements} measurements in ${duration(outcome.elapsedMs)} with \`${outcome.command}\`, tritonjs ${outcome.toolVersion}.`,
    "",
  ].join("\n\n");
}

function modelTable(outcome: AnalysisOutcome, model: string, count: number): string {
  const header = [
    ...["Model Config Name", "Max Batch Size", "Dynamic Batching", "Total Instance Count"],
    ...[
      "p99 Latency (ms)",
      "Throughput (infer/sec)",
      "Max CPU Memory Usage (MB)",
      "Gain",
      "Parameters",
      "Simulated",
      "Estimate",
    ],
  ];
  const rows = listed(outcome, count).map((row) => {
    const { figures } = row.run.models[model]!;
    const shape = shapeOf(row, model, outcome);
    const predicted = row.simulated?.run.models[model]?.figures.perf_throughput;
    return [
      variantName(model, row.result.number),
      shape?.maxBatchSize ?? "-",
      shape === undefined ? "-" : shape.dynamicBatching ? "Enabled" : "Disabled",
      shape?.instanceGroup ?? "-",
      shortNumber(figures.perf_latency_p99),
      shortNumber(figures.perf_throughput),
      shortNumber(figures.cpu_used_ram),
      signedPercent(throughputGain(row, outcome)),
      candidateText(row.result) + (row.breaches.length > 0 ? " (misses the constraints)" : ""),
      predicted === undefined ? "-" : `#${row.simulated!.rank}, ${shortNumber(predicted)}`,
      estimateText(row),
    ];
  });
  const line = (cells: readonly (string | number)[]) => `| ${cells.map(escapeCell).join(" | ")} |`;
  return [`## ${model}\n`, line(header), line(header.map(() => "---")), ...rows.map(line)].join("\n");
}

const escapeCell = (cell: string | number) => String(cell).replaceAll("|", "\\|").replaceAll("\n", " ");
