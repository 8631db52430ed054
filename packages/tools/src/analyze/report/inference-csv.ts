import { variantName } from "../candidate-result.js";
import { bestRun, failurePercent } from "../goal.js";
import type { AnalysisOutcome } from "../outcome.js";
import { shapeOf } from "./result-cells.js";

/** All measurements with the columns of Model Analyzer's `metrics-model-inference.csv`. */
export function inferenceCsv(outcome: AnalysisOutcome): string {
  const isRate = outcome.ranked.some(({ result }) =>
    result.runs.some(({ level }) => level.mode === "request_rate"),
  );
  const header = [
    ...["model_name", "batch_size", isRate ? "request_rate" : "concurrency", "model_config_path"],
    ...["instance_group", "max_batch_size", "satisfies_constraints", "perf_throughput", "perf_latency_p99"],
    ...["perf_latency_avg", "cpu_used_ram"],
  ];
  const rows = outcome.ranked.flatMap((row) =>
    row.result.runs.flatMap((run) =>
      outcome.models.map((model) => {
        const { figures } = run.models[model]!;
        const shape = shapeOf(row, model, outcome);
        return [
          ...[model, outcome.batchSize, run.level.value, variantName(model, row.result.number)],
          ...[shape?.instanceGroup ?? "", shape?.maxBatchSize ?? ""],
          failurePercent(run, outcome.goal) === 0 ? "Yes" : "No",
          ...[
            figures.perf_throughput,
            figures.perf_latency_p99,
            figures.perf_latency_avg,
            figures.cpu_used_ram,
          ].map((value) => (Number.isFinite(value) ? Number(value.toFixed(3)) : "")),
        ];
      }),
    ),
  );
  return `${[header, ...rows].map((cells) => cells.map(csvCell).join(",")).join("\n")}\n`;
}

function csvCell(cell: string | number): string {
  const text = String(cell);
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Everything for programs. */
export function analysisJson(outcome: AnalysisOutcome): string {
  const { ranked, failed, predictions, configs: _, ...rest } = outcome;
  const document = {
    ...rest,
    results: ranked.map(({ result, run, estimate, gain, breaches, simulated }, i) => ({
      rank: i + 1,
      names: Object.keys(result.candidate).map((model) => variantName(model, result.number)),
      parameters: result.candidate,
      best: run,
      estimate,
      runs: result.runs,
      satisfiesConstraints: breaches.length === 0,
      breaches,
      gain,
      simulated,
    })),
    skipped: failed.map(({ candidate, fault }) => ({ parameters: candidate, fault })),
    predictions: predictions.map(({ candidate, runs }, i) => ({
      rank: i + 1,
      parameters: candidate,
      best: bestRun(runs, outcome.goal),
    })),
  };
  return `${JSON.stringify(document, undefined, 2)}\n`;
}
