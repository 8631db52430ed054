import { createHash } from "node:crypto";
import { generatorWarnings } from "../../measure/generator-warnings.js";
import type { LevelResult } from "../../measure/level-result.js";
import { stageMs } from "../../measure/server/server-figures.js";
import { TOKEN_METRIC_NAMES, TOKEN_METRICS } from "../../measure/tokens/token-metrics.js";
import { remarkOf, reportedPercentiles } from "../console-report.js";
import { duration, sixDigits } from "../number-texts.js";
import type { RunDescription } from "../run-description.js";
import { histogramChart, latencyChart, levelName, serverChart, timelineCharts } from "./level-charts.js";
import { escapeText } from "./markup.js";
import { REPORT_STYLE } from "./report-style.js";

/**
 * The whole measurement as one HTML page. It has no script, loads nothing, and its policy allows no more than its own
 * style sheet.
 */
export function htmlReport(
  results: readonly LevelResult[],
  run: RunDescription,
  warnings: readonly string[],
): string {
  const style = createHash("sha256").update(REPORT_STYLE).digest("base64");
  const policy = `default-src 'none'; style-src 'sha256-${style}'; base-uri 'none'; form-action 'none'`;
  const title = `Performance of ${run.model}`;
  const all = [...new Set([...warnings, ...results.flatMap(warningsOf)])];
  const server = serverChart(results);
  // The parts of a ramp or a spike are no points of one curve.
  const isCurve = results.every(({ phase }) => phase === undefined);
  const histograms = results
    .filter(({ figures }) => figures.requestCount > 0)
    .map((result, i) => {
      const open = i === 0 ? " open" : "";
      return `<details${open}><summary>${escapeText(levelName(result))}</summary>${histogramChart(result)}</details>`;
    });
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${escapeText(policy)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeText(title)}</title>
<style>${REPORT_STYLE}</style>
</head>
<body>
<h1>${escapeText(title)}</h1>
${descriptionOf(results, run)}
${all.map((text) => `<p class="warning">${escapeText(text)}</p>`).join("\n")}
<h2>Levels</h2>
${levelTable(results, run)}
${tokenTable(results)}
${isCurve ? `<h2>Latency against throughput</h2>\n${latencyChart(results)}` : ""}
${server === "" ? "" : `<h2>Time in the server</h2>\n${server}`}
<h2>Distribution of the latencies</h2>
${histograms.join("\n")}
<h2>Timeline</h2>
${timelineCharts(results)}
</body>
</html>
`;
}

function warningsOf(result: LevelResult): string[] {
  const texts = [...(result.fault === undefined ? [] : [result.fault.text]), ...generatorWarnings(result)];
  return texts.map((text) => `${levelName(result)}: ${text}`);
}

function descriptionOf(results: readonly LevelResult[], run: RunDescription): string {
  const start = results[0]?.timeline[0]?.start;
  const lines = [
    `${run.serviceKind}, ${run.serviceKind === "triton_c_api" ? "in process" : `${run.protocol} at ${run.url}`}, batch size ${run.batchSize}`,
    ...(start === undefined ? [] : [`${new Date(start).toISOString()}, tritonjs ${run.toolVersion}`]),
  ];
  return [
    ...lines.map((line) => `<p>${escapeText(line)}</p>`),
    `<p><code>${escapeText(run.command)}</code></p>`,
  ].join("\n");
}

function levelTable(results: readonly LevelResult[], run: RunDescription): string {
  const percentiles = reportedPercentiles(run);
  const hasServer = results.some(({ server }) => server !== undefined);
  const header = [
    "Load",
    "infer/s",
    "Requests",
    "Errors",
    "avg",
    ...percentiles.map((percentile) => `p${percentile}`),
    ...(hasServer ? ["Queue", "Compute"] : []),
    "",
  ];
  const rows = results.map((result) => {
    const { figures, server } = result;
    const compute =
      server === undefined
        ? Number.NaN
        : stageMs(server, "computeInput") +
          stageMs(server, "computeInfer") +
          stageMs(server, "computeOutput");
    return [
      levelName(result),
      sixDigits(figures.throughput),
      figures.requestCount,
      figures.failureCount,
      duration(figures.latency.mean),
      ...percentiles.map((percentile) => duration(figures.latency.percentile(percentile))),
      ...(hasServer
        ? [duration(server === undefined ? Number.NaN : stageMs(server, "queue")), duration(compute)]
        : []),
      remarkOf(result),
    ];
  });
  return tableOf(header, rows);
}

function tokenTable(results: readonly LevelResult[]): string {
  const names = TOKEN_METRIC_NAMES.filter((name) =>
    results.some(({ figures }) => (figures.tokens?.distributions[name].count ?? 0) > 0),
  );
  if (names.length === 0) return "";
  const header = [
    "Load",
    ...names.map((name) => `${TOKEN_METRICS[name].title} (${TOKEN_METRICS[name].unit}), avg / p99`),
    "Tokens/s",
    "Goodput (requests/s)",
    "",
  ];
  const number = (value: number) => Number(value.toFixed(2));
  const rows = results.flatMap((result) => {
    const { tokens } = result.figures;
    if (tokens === undefined) return [];
    const cells = names.map((name) => {
      const distribution = tokens.distributions[name];
      if (distribution.count === 0) return "-";
      return `${number(distribution.mean)} / ${number(distribution.percentile(99))}`;
    });
    const goodput = tokens.options.goals.length === 0 ? "-" : number(tokens.goodput);
    return [[levelName(result), ...cells, number(tokens.outputTokenThroughput), goodput, ""]];
  });
  return `<h2>Streams</h2>\n${tableOf(header, rows)}`;
}

function tableOf(header: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const head = header.map((cell) => `<th scope="col">${escapeText(cell)}</th>`).join("");
  const body = rows
    .map((row) => `<tr>${row.map((cell) => `<td>${escapeText(cell)}</td>`).join("")}</tr>`)
    .join("\n");
  return `<div class="scroll"><table><thead><tr>${head}</tr></thead><tbody>\n${body}\n</tbody></table></div>`;
}
