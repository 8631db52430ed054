import { createHash } from "node:crypto";
import {
  type AxisScale,
  axisScale,
  CHART,
  drawChart,
  drawLine,
  element,
  escapeText,
  REPORT_STYLE,
} from "../report/html-chart.js";
import { duration } from "../report/write-report.js";
import {
  candidateText,
  estimateText,
  shortNumber,
  signedPercent,
  throughputGain,
  verdictText,
} from "./analysis-tables.js";
import { bestRun, type LevelRun } from "./goal.js";
import { type AnalysisOutcome, candidateName, rankAgreement, totalsOf } from "./outcome.js";

/** The analysis as one HTML page with the frontier. It has no script and loads nothing. */
export function analysisHtml(outcome: AnalysisOutcome): string {
  const style = createHash("sha256").update(REPORT_STYLE).digest("base64");
  const policy = `default-src 'none'; style-src 'sha256-${style}'; base-uri 'none'; form-action 'none'`;
  const title = `Configurations of ${outcome.models.join(", ")}`;
  const { pairs, share } = rankAgreement(outcome);
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
<p>${escapeText(verdictText(outcome))}</p>
<p>${escapeText(`${outcome.measurements} measurements in ${duration(outcome.elapsedMs)}, tritonjs ${outcome.toolVersion}`)}</p>
<p><code>${escapeText(outcome.command)}</code></p>
<h2>Throughput and p99 latency</h2>
${frontierChart(outcome)}
<h2>Configurations</h2>
${resultTable(outcome)}
${pairs === 0 ? "" : `<p>${escapeText(`The simulation has ${Math.round(share * 100)}% of ${pairs} pairs of measured configurations in the measured order.`)}</p>`}
${skippedList(outcome)}
</body>
</html>
`;
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
    "Variant",
    "infer/s",
    "p99 (ms)",
    "MB",
    "Gain",
    "Simulated",
    "Simulated infer/s",
    "Estimate",
    "Parameters",
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
  const head = header.map((cell) => `<th scope="col">${escapeText(cell)}</th>`).join("");
  const body = rows.map((row) => `<tr>${row.map((cell) => `<td>${escapeText(cell)}</td>`).join("")}</tr>`);
  return `<div class="scroll"><table><thead><tr>${head}</tr></thead><tbody>\n${body.join("\n")}\n</tbody></table></div>`;
}

function skippedList({ failed }: AnalysisOutcome): string {
  if (failed.length === 0) return "";
  const lines = failed.map(
    (result) =>
      `<p class="warning">${escapeText(`Skipped ${candidateText(result)}: ${result.fault ?? "no measurement"}`)}</p>`,
  );
  return `<h2>Skipped configurations</h2>\n${lines.join("\n")}`;
}

/** A measurement on the plane of throughput and p99 latency. */
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
