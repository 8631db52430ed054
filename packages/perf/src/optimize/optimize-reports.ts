import { escapeText, htmlPage, htmlTable } from "../report/html-chart.js";
import { alignedTable, decimals, duration } from "../report/write-report.js";
import { bestRunFor, percent, type VariantReport } from "./choose-variant.js";
import type { OptimizeResult } from "./optimize.js";

/** The result as JSON. Numbers that JSON lacks are texts. */
export function optimizeJson(result: OptimizeResult, command: string, toolVersion: string): string {
  const { choice, ...others } = result;
  const file = {
    tool: "tritonjs optimize",
    toolVersion,
    command,
    ...others,
    ...(choice !== undefined && {
      choice: { variant: choice.variant.name, run: choice.run, reason: choice.reason },
    }),
  };
  const number = (_: string, value: unknown) =>
    typeof value === "number" && !Number.isFinite(value) ? String(value) : value;
  return `${JSON.stringify(file, number, 2)}\n`;
}

/** By what the forms were compared. */
const COMPARED = {
  rate:
    "The goal rate compares rows a second of processor time (rows/CPU s), all threads of the program together. The rows a " +
    "second of the clock (rows/s) depend on what else the machine did.",
  latency: "The goal latency compares the median latency by the clock.",
  size: "The goal size compares the sizes of the files.",
} as const;

const original = ({ variants }: OptimizeResult): VariantReport => variants[0]!;

const kilobytes = (bytes: number) =>
  bytes === 0 ? "-" : bytes < 1e6 ? `${decimals(bytes / 1e3)} kB` : `${decimals(bytes / 1e6)} MB`;

/** One line for each form. */
export function formsTable(result: OptimizeResult): string {
  const header = ["form", "size", "error", "accuracy", "rows/s", "rows/CPU s", "latency", "p99", ""];
  const rows = result.variants.map((variant) => rowOf(variant, result));
  const lines = alignedTable([header, ...rows], [0, header.length - 1]);
  return `${lines.join("\n")}\n\n${verdictOf(result)}\n`;
}

function rowOf(variant: VariantReport, result: OptimizeResult): string[] {
  const { comparison, fault, name, bytes } = variant;
  const run = bestRunFor(variant, result.goal, {});
  const errors = comparison?.outputs.filter(({ isReal }) => isReal).map(({ relative }) => relative) ?? [];
  const share = bytes > 0 && name !== "original" ? ` (${(bytes / original(result).bytes).toFixed(2)})` : "";
  return [
    `${result.choice?.variant.name === name ? "*" : " "} ${name}`,
    `${kilobytes(bytes)}${share}`,
    errors.length === 0 ? "-" : percent(Math.max(...errors)),
    comparison?.accuracy === undefined ? "-" : percent(comparison.accuracy),
    run === undefined ? "-" : decimals(run.rate),
    run === undefined ? "-" : decimals(1000 / run.cpuMs),
    run === undefined ? "-" : duration(run.latencyMs),
    run === undefined ? "-" : duration(run.p99Ms),
    fault ?? "",
  ];
}

export function verdictOf({ choice, isInterrupted, limits, folder, variants }: OptimizeResult): string {
  if (isInterrupted) return "Interrupted before a form was chosen.";
  if (choice === undefined) {
    const faults = variants.filter(({ fault }) => fault !== undefined).length;
    return `No form is within the limits ${JSON.stringify(limits)}: ${faults} of ${variants.length} have a fault.`;
  }
  return `Chosen: ${choice.variant.name} (${choice.variant.text}), ${choice.reason}.\nWritten: ${folder}`;
}

/** The result as a page without scripts. */
export function optimizeHtml(result: OptimizeResult, command: string, toolVersion: string): string {
  const { variants, samples, name, elapsedMs } = result;
  const source = samples.isGenerated ? "generated" : "given";
  const labels = samples.hasLabels ? ", with labels" : "";
  const effort = `${samples.count} ${source} samples${labels}, ${duration(elapsedMs)}, tritonjs ${toolVersion}`;
  return htmlPage(
    `Forms of ${name}`,
    `<p>${escapeText(verdictOf(result))}</p>
<p>${escapeText(effort)}</p>
<p><code>${escapeText(command)}</code></p>
<h2>Forms</h2>
${formTable(result)}
<h2>Errors of the outputs</h2>
${errorTable(variants)}
<h2>Latency and rate</h2>
<p>${escapeText(COMPARED[result.goal])}</p>
${loadTable(variants)}
${layerTables(variants)}`,
  );
}

function formTable(result: OptimizeResult): string {
  const header = ["form", "what it is", "size", "share", "layers", "CPU of a row", "accuracy", "why not"];
  const rows = result.variants.map(({ name, text, bytes, layers, cpuMs, comparison, fault }) => [
    result.choice?.variant.name === name ? `${name} (chosen)` : name,
    text,
    kilobytes(bytes),
    bytes === 0 ? "-" : (bytes / original(result).bytes).toFixed(3),
    layers.length,
    cpuMs === undefined ? "-" : duration(cpuMs),
    comparison?.accuracy === undefined ? "-" : percent(comparison.accuracy),
    fault ?? "",
  ]);
  return htmlTable(header, rows);
}

function errorTable(variants: readonly VariantReport[]): string {
  const header = ["form", "output", "largest error", "mean error", "relative error", "same answers"];
  const rows = variants.flatMap(({ name, comparison }) =>
    (comparison?.outputs ?? []).map((output) => [
      name,
      output.name,
      output.largest.toPrecision(3),
      output.mean.toPrecision(3),
      output.isReal ? percent(output.relative) : "-",
      percent(output.agreement),
    ]),
  );
  return htmlTable(header, rows);
}

function loadTable(variants: readonly VariantReport[]): string {
  const header = [
    "form",
    "rows",
    "in flight",
    "threads",
    "rows/s",
    "rows/CPU s",
    "median latency",
    "p99",
    "spread",
    "memory",
  ];
  const rows = variants.flatMap(({ name, runs }) =>
    runs.map((run) => [
      name,
      run.batchSize,
      run.concurrency,
      run.threads || "default",
      decimals(run.rate),
      decimals(1000 / run.cpuMs),
      duration(run.latencyMs),
      duration(run.p99Ms),
      percent(run.spread),
      `${decimals(run.memoryMb)} MB`,
    ]),
  );
  return htmlTable(header, rows);
}

/** Which layers made the error of the forms that were refused. */
function layerTables(variants: readonly VariantReport[]): string {
  return variants
    .filter(({ worstLayers }) => worstLayers.length > 0)
    .map(({ name, worstLayers }) => {
      const rows = worstLayers.map(({ layer, operator, added, relative }) => [
        layer,
        operator,
        percent(added),
        percent(relative),
      ]);
      const table = htmlTable(["layer", "operator", "error that it adds", "error of its output"], rows);
      return `<h2>${escapeText(`Layers of ${name} by error`)}</h2>\n${table}`;
    })
    .join("\n");
}
