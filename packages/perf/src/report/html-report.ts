import { countsConcurrency, levelValue } from "../load/load-level.js";
import { generatorWarnings, isStable, type LevelResult } from "../measure/level-result.js";
import { TOKEN_METRIC_NAMES, TOKEN_METRICS } from "../measure/request-figures.js";
import { computeMs, overheadMs, type ServerFigures, stageMs } from "../measure/server-watch.js";
import { remarkOf, reportedPercentiles } from "./console-report.js";
import {
  axisScale,
  CHART,
  type ChartPoint,
  drawChart,
  drawLine,
  element,
  escapeText,
  htmlPage,
  htmlTable,
} from "./html-chart.js";
import { duration, type RunDescription, sixDigits } from "./write-report.js";

/** The whole measurement as one HTML page. */
export function htmlReport(
  results: readonly LevelResult[],
  run: RunDescription,
  warnings: readonly string[],
): string {
  const all = [...new Set([...warnings, ...results.flatMap(warningsOf)])];
  const server = serverChart(results);
  // The parts of a ramp or a spike are not points of one curve.
  const isCurve = results.every(({ phase }) => phase === undefined);
  const histograms = results
    .filter(({ figures }) => figures.requestCount > 0)
    .map((result, i) => {
      const open = i === 0 ? " open" : "";
      return `<details${open}><summary>${escapeText(levelName(result))}</summary>${histogramChart(result)}</details>`;
    });
  return htmlPage(
    `Performance of ${run.model}`,
    `${descriptionOf(results, run)}
${all.map((text) => `<p class="warning">${escapeText(text)}</p>`).join("\n")}
<h2>Levels</h2>
${levelTable(results, run)}
${tokenTable(results)}
${isCurve ? `<h2>Latency against throughput</h2>\n${latencyChart(results)}` : ""}
${server === "" ? "" : `<h2>Time in the server</h2>\n${server}`}
<h2>Distribution of the latencies</h2>
${histograms.join("\n")}
<h2>Timeline</h2>
${timelineCharts(results)}`,
  );
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
    ...["Load", "infer/s", "Requests", "Errors", "avg"],
    ...percentiles.map((percentile) => `p${percentile}`),
    ...(hasServer ? ["Queue", "Compute"] : []),
    "Remark",
  ];
  const rows = results.map((result) => {
    const { figures, server } = result;
    const times =
      server === undefined ? [Number.NaN, Number.NaN] : [stageMs(server, "queue"), computeMs(server)];
    return [
      levelName(result),
      sixDigits(figures.throughput),
      figures.requestCount,
      figures.failureCount,
      duration(figures.latency.mean),
      ...percentiles.map((percentile) => duration(figures.latency.percentile(percentile))),
      ...(hasServer ? times.map(duration) : []),
      remarkOf(result),
    ];
  });
  return htmlTable(header, rows);
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
    return [[levelName(result), ...cells, number(tokens.outputTokenThroughput), goodput]];
  });
  return `<h2>Streams</h2>\n${htmlTable(header, rows)}`;
}

const verticalScale = (values: readonly number[]) => axisScale(values, CHART.bottom, CHART.top);

const LATENCIES = [
  { name: "p50", percentile: 50, series: 1 },
  { name: "p90", percentile: 90, series: 2 },
  { name: "p99", percentile: 99, series: 3 },
] as const;

const BARS = 40;

export function levelName(result: LevelResult): string {
  const value = sixDigits(levelValue(result.level));
  const name = countsConcurrency(result.level) ? `concurrency ${value}` : `${value} requests/s`;
  return result.phase === undefined ? name : `${name} (${result.phase})`;
}

function latencyChart(results: readonly LevelResult[]): string {
  const measured = results
    .filter(({ figures }) => figures.requestCount > 0)
    .toSorted((a, b) => levelValue(a.level) - levelValue(b.level));
  const throughputs = measured.map(({ figures }) => figures.throughput);
  const x = axisScale(throughputs, CHART.left, CHART.right, 8);
  const y = verticalScale(measured.map(({ figures }) => figures.latency.percentile(99)));
  const lines = LATENCIES.map(({ name, percentile, series }) => {
    const points = measured.map((result): ChartPoint => {
      const latency = result.figures.latency.percentile(percentile);
      const remark = remarkOf(result);
      const text =
        `${levelName(result)}: ${name} ${duration(latency)}, ${sixDigits(result.figures.throughput)} infer/s` +
        (remark === "" ? "" : `, ${remark}`);
      return { x: result.figures.throughput, y: latency, text, doubtful: !isStable(result) };
    });
    return drawLine(points, series, x, y);
  });
  return drawChart(
    {
      label: "Latency against throughput",
      x: { scale: x, title: "inferences per second" },
      y: { scale: y, title: "latency in ms" },
      legend: LATENCIES.map(({ name, series }) => ({ name, series })),
    },
    lines.join(""),
  );
}

function barOf(name: string, x: number, y: number, width: number, height: number, text: string): string {
  const of = (position: number) => Number(position.toFixed(1));
  const box = { x: of(x), y: of(y), width: of(width), height: of(Math.max(0, height)) };
  return element("rect", { class: name, ...box }, element("title", {}, escapeText(text)));
}

function histogramChart(result: LevelResult): string {
  const { latency } = result.figures;
  const bars = latency.bars(BARS);
  const [first] = bars;
  const last = bars.at(-1);
  if (first === undefined || last === undefined) return "";
  const count = verticalScale(bars.map((bar) => bar.count));
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((part) =>
    Number((first.from + (last.to - first.from) * part).toPrecision(3)),
  );
  const scale = {
    ticks,
    positionOf: (value: number) =>
      CHART.left + ((value - first.from) / (last.to - first.from || 1)) * (CHART.right - CHART.left),
  };
  const marks = bars.map((bar, i) => {
    const from = scale.positionOf(bar.from);
    const top = count.positionOf(bar.count);
    const above = i === bars.length - 1 ? " and more" : "";
    const text = `${duration(bar.from)} to ${duration(bar.to)}${above}: ${bar.count}`;
    return barOf(
      "bar",
      from,
      top,
      Math.max(1, scale.positionOf(bar.to) - from - 1),
      CHART.bottom - top,
      text,
    );
  });
  return drawChart(
    {
      label: `Distribution of the latencies at ${levelName(result)}`,
      x: { scale, title: "latency in ms" },
      y: { scale: count, title: "requests" },
    },
    element("g", { class: "series-1" }, marks.join("")),
  );
}

function timelineCharts(results: readonly LevelResult[]): string {
  const moments = results.flatMap((result) => result.timeline.map((moment) => ({ result, moment })));
  const start = moments[0]?.moment.start;
  if (start === undefined) return "";
  const seconds = (at: number) => (at - start) / 1000;
  const ends = moments.map(({ moment }) => seconds(moment.end));
  const x = axisScale(ends, CHART.left, CHART.right, 8);
  const draw = (
    title: string,
    series: readonly { readonly name: string; readonly series: number; of(moment: Moment): number }[],
  ) => {
    const y = verticalScale(moments.flatMap(({ moment }) => series.map(({ of }) => of(moment))));
    const lines = series.map(({ name, series: index, of }) => {
      const points = moments.map(({ result, moment }) => {
        const at = Number(seconds(moment.end).toFixed(1));
        return {
          x: seconds(moment.end),
          y: of(moment),
          text: `${at} s, ${levelName(result)}: ${name} ${sixDigits(of(moment))}`,
        };
      });
      return drawLine(points, index, x, y);
    });
    return drawChart(
      {
        label: `${title} over time`,
        x: { scale: x, title: "seconds" },
        y: { scale: y, title },
        legend: series,
      },
      lines.join(""),
    );
  };
  return (
    draw("inferences per second", [{ name: "throughput", series: 4, of: ({ throughput }) => throughput }]) +
    draw("latency in ms", [
      { name: "p50", series: 1, of: ({ p50Ms }) => p50Ms },
      { name: "p99", series: 3, of: ({ p99Ms }) => p99Ms },
    ])
  );
}

type Moment = LevelResult["timeline"][number];

/** The parts of the server's time, in the order of a request's way. */
const PARTS = [
  ["queue", (server: ServerFigures) => stageMs(server, "queue")],
  ["compute input", (server: ServerFigures) => stageMs(server, "computeInput")],
  ["compute infer", (server: ServerFigures) => stageMs(server, "computeInfer")],
  ["compute output", (server: ServerFigures) => stageMs(server, "computeOutput")],
  ["cache hit", (server: ServerFigures) => stageMs(server, "cacheHit")],
  ["cache miss", (server: ServerFigures) => stageMs(server, "cacheMiss")],
  ["overhead", overheadMs],
] as const;

/** The server's share of the latency: a bar for each level. Empty where the server does not tell. */
function serverChart(results: readonly LevelResult[]): string {
  const rows = results.flatMap(({ server, ...result }) => {
    if (server === undefined) return [];
    const value = sixDigits(levelValue(result.level));
    return [{ name: levelName(result), value, parts: PARTS.map(([, partOf]) => partOf(server)) }];
  });
  if (rows.length === 0) return "";
  const used = PARTS.map(([name], i) => ({ name, i, series: i + 1 })).filter(({ i }) =>
    rows.some(({ parts }) => parts[i]! > 0),
  );
  const y = verticalScale(rows.map(({ parts }) => parts.reduce((sum, part) => sum + part, 0)));
  const width = (CHART.right - CHART.left) / rows.length;
  const marks = rows.map(({ name, parts }, row) => {
    let below = 0;
    const bars = used.map(({ name: stage, i, series }) => {
      const part = parts[i]!;
      const top = y.positionOf(below + part);
      const height = y.positionOf(below) - top;
      below += part;
      const x = CHART.left + row * width + width * 0.15;
      const text = `${name}: ${stage} ${duration(part)}`;
      return barOf(`bar series-${series}`, x, top, width * 0.7, height, text);
    });
    return bars.join("");
  });
  const every = Math.ceil(rows.length / 12);
  const x = {
    ticks: rows.map((_, row) => row).filter((row) => row % every === 0),
    positionOf: (row: number) => CHART.left + (row + 0.5) * width,
    labelOf: (row: number) => rows[row]!.value,
  };
  return drawChart(
    {
      label: "Time of a request in the server",
      x: { scale: x, title: "load" },
      y: { scale: y, title: "ms in the server" },
      legend: used,
    },
    marks.join(""),
  );
}
