import { countsConcurrency, isStable, type LevelResult, levelValue } from "../../measure/level-result.js";
import { overheadMs, stageMs } from "../../measure/server/server-figures.js";
import { remarkOf } from "../console-report.js";
import { duration, sixDigits } from "../number-texts.js";
import { axisScale } from "./axis-scale.js";
import { CHART, type ChartPoint, drawChart, drawLine } from "./chart-frame.js";
import { element, escapeText } from "./markup.js";

/** Series of the chart of latency against throughput. */
const LATENCIES = [
  { name: "p50", percentile: 50, series: 1 },
  { name: "p90", percentile: 90, series: 2 },
  { name: "p99", percentile: 99, series: 3 },
] as const;

/** Number of bars of a histogram. */
const BARS = 40;

/** Short name of a level. */
export function levelName(result: LevelResult): string {
  const value = sixDigits(levelValue(result.level));
  const name = countsConcurrency(result.level) ? `concurrency ${value}` : `${value} requests/s`;
  return result.phase === undefined ? name : `${name} (${result.phase})`;
}

/** Latency against throughput: one point for each level. Points of levels that are not stable are hollow. */
export function latencyChart(results: readonly LevelResult[]): string {
  const measured = results
    .filter(({ figures }) => figures.requestCount > 0)
    .toSorted((a, b) => levelValue(a.level) - levelValue(b.level));
  const x = axisScale(
    measured.map(({ figures }) => figures.throughput),
    CHART.left,
    CHART.right,
    8,
  );
  const y = axisScale(
    measured.map(({ figures }) => figures.latency.percentile(99)),
    CHART.bottom,
    CHART.top,
  );
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

/** Distribution of the latencies of a level. */
export function histogramChart(result: LevelResult): string {
  const { latency } = result.figures;
  const bars = latency.bars(BARS);
  const [first] = bars;
  const last = bars.at(-1);
  if (first === undefined || last === undefined) return "";
  const count = axisScale(
    bars.map((bar) => bar.count),
    CHART.bottom,
    CHART.top,
  );
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
    return element(
      "rect",
      {
        class: "bar",
        x: Number(from.toFixed(1)),
        y: Number(top.toFixed(1)),
        width: Number(Math.max(1, scale.positionOf(bar.to) - from - 1).toFixed(1)),
        height: Number(Math.max(0, CHART.bottom - top).toFixed(1)),
      },
      element("title", {}, escapeText(`${duration(bar.from)} to ${duration(bar.to)}${above}: ${bar.count}`)),
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

/** Throughput and latency over the time of the whole measurement. */
export function timelineCharts(results: readonly LevelResult[]): string {
  const moments = results.flatMap((result) => result.timeline.map((moment) => ({ result, moment })));
  const start = moments[0]?.moment.start;
  if (start === undefined) return "";
  const seconds = (at: number) => (at - start) / 1000;
  const x = axisScale(
    moments.map(({ moment }) => seconds(moment.end)),
    CHART.left,
    CHART.right,
    8,
  );
  const draw = (
    title: string,
    series: readonly { readonly name: string; readonly series: number; of(moment: Moment): number }[],
  ) => {
    const y = axisScale(
      moments.flatMap(({ moment }) => series.map(({ of }) => of(moment))),
      CHART.bottom,
      CHART.top,
    );
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
const STAGES = ["queue", "computeInput", "computeInfer", "computeOutput", "cacheHit", "cacheMiss"] as const;
const STAGE_NAMES = [
  "queue",
  "compute input",
  "compute infer",
  "compute output",
  "cache hit",
  "cache miss",
  "overhead",
];

/** The server's share of the latency: a bar for each level. Empty where the server does not tell. */
export function serverChart(results: readonly LevelResult[]): string {
  const rows = results.flatMap((result) =>
    result.server === undefined
      ? []
      : [
          {
            name: levelName(result),
            value: sixDigits(levelValue(result.level)),
            parts: [...STAGES.map((stage) => stageMs(result.server!, stage)), overheadMs(result.server)],
          },
        ],
  );
  if (rows.length === 0) return "";
  const used = STAGE_NAMES.map((name, i) => ({ name, i, series: i + 1 })).filter(({ i }) =>
    rows.some(({ parts }) => parts[i]! > 0),
  );
  const y = axisScale(
    rows.map(({ parts }) => parts.reduce((sum, part) => sum + part, 0)),
    CHART.bottom,
    CHART.top,
  );
  const width = (CHART.right - CHART.left) / rows.length;
  const marks = rows.map(({ name, parts }, row) => {
    let below = 0;
    const bars = used.map(({ name: stage, i, series }) => {
      const part = parts[i]!;
      const top = y.positionOf(below + part);
      const height = y.positionOf(below) - top;
      below += part;
      return element(
        "rect",
        {
          class: `bar series-${series}`,
          x: Number((CHART.left + row * width + width * 0.15).toFixed(1)),
          y: Number(top.toFixed(1)),
          width: Number((width * 0.7).toFixed(1)),
          height: Number(Math.max(0, height).toFixed(1)),
        },
        element("title", {}, escapeText(`${name}: ${stage} ${duration(part)}`)),
      );
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
