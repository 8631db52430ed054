import {
  type AxisScale,
  axisScale,
  CHART,
  drawChart,
  drawLine,
  element,
  escapeText,
  htmlPage,
  htmlTable,
} from "../report/html-chart.js";
import { alignedTable, csvTable, duration } from "../report/write-report.js";
import {
  type Breach,
  bestRun,
  type Candidate,
  failurePercent,
  type LevelRun,
  METRICS,
  parametersText,
  variantConfig,
  variantName,
} from "./candidate.js";
import {
  type AnalysisOutcome,
  candidateName,
  isMet,
  listed,
  noiseOf,
  type RankedResult,
  rankAgreement,
  totalsOf,
} from "./outcome.js";

const WIDTH = 80;

/** The result for a terminal of 80 columns: a table of the best configurations and the default, and a verdict. */
export function consoleTable(outcome: AnalysisOutcome, count: number): string {
  const rows = listed(outcome, count);
  const hasSimulation = rows.some(({ simulated }) => simulated !== undefined);
  const simulation = hasSimulation ? ["simulated", "estimate"] : [];
  const header = ["variant", "infer/s", "p99 ms", "MB", "gain", ...simulation, ""];
  const cells = rows.map((row) => cellsOf(row, outcome, hasSimulation));
  const texts = [
    verdictText(outcome),
    ...rows.map(
      ({ result }) => `${shortName(result.number)}: ${candidateText(result)} (${candidateName(result)})`,
    ),
    ...agreementTexts(outcome),
    ...noiseTexts(outcome),
    ...outcome.failed.map(
      (result) =>
        `Skipped ${candidateName(result)} (${candidateText(result)}): ${result.fault ?? "no measurement"}`,
    ),
    `${outcome.measurements} measurement${outcome.measurements === 1 ? "" : "s"} in ${duration(outcome.elapsedMs)}` +
      `${outcome.endedBy === undefined ? "." : `; the search ended early: ${ENDS[outcome.endedBy]}.`}`,
  ];
  return `${[...alignedTable([header, ...cells]), "", ...texts.flatMap(wrapped)].join("\n")}\n`;
}

/** How well the simulation ranks, if it was used. */
function agreementTexts(outcome: AnalysisOutcome): string[] {
  const { pairs, share } = rankAgreement(outcome);
  if (pairs === 0) return [];
  const percent = Math.round(share * 100);
  return [
    `The simulation has ${percent}% of ${pairs} pairs of measured configurations in the measured order.`,
  ];
}

/** How much the configurations varied while they were measured, so that a reader knows which differences mean nothing. */
function noiseTexts({ ranked }: AnalysisOutcome): string[] {
  const [worst] = ranked.toSorted((a, b) => (b.run.spread ?? 0) - (a.run.spread ?? 0));
  if (worst?.run.spread === undefined) return [];
  const fallback = ranked.find(({ result }) => result.number === undefined)?.run.spread;
  const percent = (share: number) => `${Math.round(share * 100)}%`;
  const ofDefault =
    fallback === undefined ? "" : `that of the default configuration by ${percent(fallback)}, `;
  return [
    `Noise: throughput varied while it was measured, ${ofDefault}at most by ${percent(worst.run.spread)} ` +
      `(${shortName(worst.result.number)}). A smaller difference between two configurations means nothing.`,
  ];
}

/** Whether a configuration differs from the default by no more than either of both varied. */
function isNoise(row: RankedResult, outcome: AnalysisOutcome): boolean {
  const gain = throughputGain(row, outcome);
  const noise = noiseOf(row, outcome);
  if (gain === undefined || noise === undefined || row.result.number === undefined) return false;
  return Math.abs(gain) <= noise;
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
    row.breaches.length > 0 ? "misses" : isNoise(row, outcome) ? "noise" : "",
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

/** A number with about three significant digits. */
export function shortNumber(value: number): string {
  if (!Number.isFinite(value)) return "-";
  return Math.abs(value) >= 100 ? String(Math.round(value)) : String(Number(value.toPrecision(3)));
}

function signedPercent(share: number | undefined): string {
  if (share === undefined || !Number.isFinite(share)) return "-";
  const percent = Math.round(share * 100);
  return `${percent > 0 ? "+" : ""}${percent}%`;
}

/** Throughput and p99 latency of the estimate that decides the place of a candidate, if it has one. */
function estimateText({ estimate }: RankedResult): string {
  if (estimate === undefined) return "-";
  const { throughput, p99Ms } = totalsOf(estimate);
  return `${shortNumber(throughput)}, ${shortNumber(p99Ms)} ms`;
}

function throughputGain(row: RankedResult, outcome: AnalysisOutcome): number | undefined {
  const fallback = outcome.ranked.find(({ result }) => result.number === undefined);
  if (fallback === undefined) return undefined;
  const before = totalsOf(fallback.run).throughput;
  return before > 0 ? totalsOf(row.run).throughput / before - 1 : undefined;
}

export function candidateText({ candidate }: { readonly candidate: Candidate }): string {
  const models = Object.keys(candidate);
  return models
    .map((model) => `${models.length > 1 ? `${model}: ` : ""}${parametersText(candidate[model]!)}`)
    .join("; ");
}

function shapeOf(
  row: RankedResult,
  model: string,
  { configs }: AnalysisOutcome,
): { instances: number; maxBatchSize: number; dynamicBatching: boolean; instanceGroup: string } | undefined {
  const config = configs[model];
  if (config === undefined) return undefined;
  const changed = variantConfig(config, row.result.candidate[model] ?? {});
  const groups = changed.instanceGroup.map(({ count, kind }) => `${Math.max(1, count)}:${kind.slice(5)}`);
  return {
    instances: changed.instanceGroup.reduce((sum, { count }) => sum + Math.max(1, count), 0),
    maxBatchSize: changed.maxBatchSize,
    dynamicBatching: changed.dynamicBatching !== undefined,
    instanceGroup: groups.join("/"),
  };
}

/** A constraint that is not met, for instance `perf_latency_p99 is 62 ms, over 50 ms`. */
function breachText({ model, tag, limit, value }: Breach, several: boolean): string {
  const { unit } = METRICS[tag];
  const relation = value < limit ? "under" : "over";
  const name = several ? `${tag} of ${model}` : tag;
  return `${name} is ${shortNumber(value)} ${unit}, ${relation} ${shortNumber(limit)} ${unit}`;
}

function verdictText(outcome: AnalysisOutcome): string {
  const [best] = outcome.ranked;
  if (best === undefined) return "No configuration was measured.";
  const { throughput, p99Ms } = totalsOf(best.run);
  const figures = `${shortNumber(throughput)} infer/s with a p99 latency of ${shortNumber(p99Ms)} ms`;
  if (!isMet(outcome)) {
    const missing = best.breaches.map((breach) => breachText(breach, outcome.models.length > 1)).join("; ");
    return `No measured configuration meets the constraints. The nearest is ${candidateText(best.result)}: ${missing}.`;
  }
  if (best.result.number === undefined) return `The default configuration is the best one: ${figures}.`;
  const gain = throughputGain(best, outcome);
  const within = isNoise(best, outcome) ? ", which may be noise" : "";
  const change = gain === undefined ? "" : `, ${signedPercent(gain)} throughput against the default${within}`;
  return `The best configuration is ${candidateText(best.result)}: ${figures}${change}.`;
}

/** A summary with Model Analyzer's columns, one table for each model that got load. */
export function markdownSummary(outcome: AnalysisOutcome, count: number): string {
  const tables = outcome.models.map((model) => modelTable(outcome, model, count));
  const skipped = outcome.failed.map(
    (result) => `- ${escapeCell(candidateText(result))}: ${escapeCell(result.fault ?? "no measurement")}`,
  );
  return [
    `# Configurations of ${outcome.models.join(", ")}`,
    verdictText(outcome),
    ...tables,
    ...agreementTexts(outcome),
    ...noiseTexts(outcome),
    ...(skipped.length === 0 ? [] : ["## Skipped configurations", skipped.join("\n")]),
    `${outcome.measurements} measurements in ${duration(outcome.elapsedMs)} with \`${outcome.command}\`, tritonjs ${outcome.toolVersion}.`,
    "",
  ].join("\n\n");
}

function modelTable(outcome: AnalysisOutcome, model: string, count: number): string {
  const header = [
    ...["Model Config Name", "Max Batch Size", "Dynamic Batching", "Total Instance Count"],
    ...["p99 Latency (ms)", "Throughput (infer/sec)", "Max CPU Memory Usage (MB)", "Gain"],
    ...["Parameters", "Simulated", "Estimate"],
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
  return csvTable([header, ...rows]);
}

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

/** The analysis as one HTML page with the frontier. */
export function analysisHtml(outcome: AnalysisOutcome): string {
  const effort = `${outcome.measurements} measurements in ${duration(outcome.elapsedMs)}, tritonjs ${outcome.toolVersion}`;
  return htmlPage(
    `Configurations of ${outcome.models.join(", ")}`,
    `<p>${escapeText(verdictText(outcome))}</p>
<p>${escapeText(effort)}</p>
<p><code>${escapeText(outcome.command)}</code></p>
<h2>Throughput and p99 latency</h2>
${frontierChart(outcome)}
<h2>Configurations</h2>
${resultTable(outcome)}
${[...agreementTexts(outcome), ...noiseTexts(outcome)].map((text) => `<p>${escapeText(text)}</p>`)}
${skippedList(outcome)}`,
  );
}

function frontierChart(outcome: AnalysisOutcome): string {
  const measured = outcome.ranked.flatMap(({ result }) =>
    result.runs.map((run) => pointOf(run, `${candidateName(result)}: ${candidateText(result)}`)),
  );
  const fallback = outcome.ranked.find(({ result }) => result.number === undefined);
  const defaults = fallback === undefined ? [] : fallback.result.runs.map((run) => pointOf(run, "default"));
  const simulated = outcome.predictions.flatMap((prediction) => {
    const run = bestRun(prediction.runs, outcome.goal);
    return run === undefined ? [] : [pointOf(run, `simulated: ${candidateText(prediction)}`)];
  });
  const all = [...measured, ...simulated].filter(({ p99Ms }) => Number.isFinite(p99Ms));
  const x = axisScale(
    all.map(({ throughput }) => throughput),
    CHART.left,
    CHART.right,
  );
  const y = axisScale(
    all.map(({ p99Ms }) => p99Ms),
    CHART.bottom,
    CHART.top,
  );
  const frontier = frontierOf(measured).map((point) => ({
    x: point.throughput,
    y: point.p99Ms,
    text: textOf(point),
  }));
  const series = [
    ...(simulated.length > 0 ? [{ name: "simulated", series: 7 }] : []),
    { name: "measured", series: 1 },
    { name: "default", series: 3 },
    { name: "frontier of the measured ones", series: 4 },
  ];
  return drawChart(
    {
      label: "Throughput and p99 latency of all configurations",
      x: { scale: x, title: "throughput (infer/s)" },
      y: { scale: y, title: "p99 latency (ms)" },
      legend: series,
    },
    dots(simulated, 7, x, y) +
      drawLine(frontier, 4, x, y) +
      dots(measured, 1, x, y) +
      dots(defaults, 3, x, y),
  );
}

const textOf = ({ text, throughput, p99Ms }: FrontierPoint) =>
  `${text}: ${shortNumber(throughput)} infer/s, p99 ${shortNumber(p99Ms)} ms`;

function dots(points: readonly FrontierPoint[], series: number, x: AxisScale, y: AxisScale): string {
  const marks = points
    .filter(({ throughput, p99Ms }) => Number.isFinite(throughput) && Number.isFinite(p99Ms))
    .map((point) =>
      element(
        "circle",
        {
          class: series === 7 ? "dot hollow" : "dot",
          cx: x.positionOf(point.throughput).toFixed(1),
          cy: y.positionOf(point.p99Ms).toFixed(1),
          r: series === 7 ? 2 : 4,
        },
        element("title", {}, escapeText(textOf(point))),
      ),
    );
  return element("g", { class: `series-${series}` }, marks.join(""));
}

function resultTable(outcome: AnalysisOutcome): string {
  const header = [
    ...["Variant", "infer/s", "p99 (ms)", "MB", "Gain", "Simulated", "Simulated infer/s"],
    ...["Estimate", "Parameters"],
  ];
  const rows = outcome.ranked.map((row) => {
    const { throughput, p99Ms, memory } = totalsOf(row.run);
    return [
      candidateName(row.result),
      shortNumber(throughput),
      shortNumber(p99Ms),
      shortNumber(memory),
      signedPercent(throughputGain(row, outcome)),
      row.simulated === undefined ? "-" : `#${row.simulated.rank}`,
      row.simulated === undefined ? "-" : shortNumber(totalsOf(row.simulated.run).throughput),
      estimateText(row),
      candidateText(row.result) + (row.breaches.length > 0 ? " (misses the constraints)" : ""),
    ];
  });
  return htmlTable(header, rows);
}

function skippedList({ failed }: AnalysisOutcome): string {
  if (failed.length === 0) return "";
  const lines = failed.map(
    (result) =>
      `<p class="warning">${escapeText(`Skipped ${candidateText(result)}: ${result.fault ?? "no measurement"}`)}</p>`,
  );
  return `<h2>Skipped configurations</h2>\n${lines.join("\n")}`;
}

export interface FrontierPoint {
  readonly throughput: number;
  readonly p99Ms: number;
  readonly text: string;
}

function pointOf(run: LevelRun, text: string): FrontierPoint {
  const { throughput, p99Ms } = totalsOf(run);
  return { throughput, p99Ms, text };
}

/** Points of which no other has both more throughput and less latency, by rising throughput. */
export function frontierOf(points: readonly FrontierPoint[]): FrontierPoint[] {
  const frontier: FrontierPoint[] = [];
  for (const point of points.toSorted((a, b) => b.throughput - a.throughput || a.p99Ms - b.p99Ms)) {
    const last = frontier.at(-1);
    if (Number.isFinite(point.p99Ms) && (last === undefined || point.p99Ms < last.p99Ms))
      frontier.push(point);
  }
  return frontier.reverse();
}
