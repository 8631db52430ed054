import { invalidOption } from "../data/invalid-option.js";
import type { LevelResult } from "../measure/level-result.js";
import { stageMs } from "../measure/server/server-figures.js";
import { TOKEN_METRIC_NAMES } from "../measure/tokens/token-metrics.js";

const OPERATORS = {
  "<=": (a: number, b: number) => a <= b,
  ">=": (a: number, b: number) => a >= b,
  "==": (a: number, b: number) => a === b,
  "<": (a: number, b: number) => a < b,
  ">": (a: number, b: number) => a > b,
} as const;

/** Factors from units to the unit of a figure: milliseconds, and shares from 0 to 1. */
const UNITS: Readonly<Record<string, { readonly of: "time" | "share"; readonly factor: number }>> = {
  us: { of: "time", factor: 0.001 },
  µs: { of: "time", factor: 0.001 },
  ms: { of: "time", factor: 1 },
  s: { of: "time", factor: 1000 },
  "%": { of: "share", factor: 0.01 },
};

interface Figure {
  readonly kind: "time" | "share" | "number";
  /** NaN where it was not measured. */
  read(result: LevelResult): number;
}

/** Figures that conditions may name, besides percentiles and those of tokens. Times are milliseconds. */
const FIGURES: Readonly<Record<string, Figure>> = {
  avg: { kind: "time", read: ({ figures }) => figures.latency.mean },
  min: { kind: "time", read: ({ figures }) => figures.latency.min },
  max: { kind: "time", read: ({ figures }) => figures.latency.max },
  queue: {
    kind: "time",
    read: ({ server }) => (server === undefined ? Number.NaN : stageMs(server, "queue")),
  },
  throughput: { kind: "number", read: ({ figures }) => figures.throughput },
  request_throughput: { kind: "number", read: ({ figures }) => figures.requestThroughput },
  errors: { kind: "number", read: ({ figures }) => figures.failureCount },
  error_rate: { kind: "share", read: ({ figures }) => figures.failureShare },
  output_token_throughput: {
    kind: "number",
    read: ({ figures }) => figures.tokens?.outputTokenThroughput ?? Number.NaN,
  },
  goodput: { kind: "number", read: ({ figures }) => figures.tokens?.goodput ?? Number.NaN },
};

/** A condition on the figures of a level. */
export interface Assertion {
  /** As it was written. */
  readonly text: string;
  /** Value of the figure in its own unit; NaN where it was not measured. */
  valueIn(result: LevelResult): number;
  /** A value that was not measured holds in no condition. */
  holds(value: number): boolean;
}

/**
 * Reads conditions such as `p99<50ms,throughput>1000`.
 *
 * @throws TritonError INVALID_ARG for an unknown figure, operator or unit
 */
export function readAssertions(text: string): Assertion[] {
  return text
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "")
    .map(readAssertion);
}

function readAssertion(text: string): Assertion {
  const [, name = "", operator = "", number = "", unit = ""] =
    /^([\w.]+)\s*(<=|>=|==|<|>)\s*([\d.]+(?:e[+-]?\d+)?)\s*(\S*)$/.exec(text) ?? [];
  const compare = OPERATORS[operator as keyof typeof OPERATORS];
  if (compare === undefined || !Number.isFinite(Number(number))) {
    throw invalidOption(`--assert: expected a condition such as p99<50ms or throughput>1000, got '${text}'`);
  }
  const { kind, read } = figureOf(name, text);
  const factor = unit === "" ? 1 : UNITS[unit]?.of === kind ? UNITS[unit].factor : undefined;
  if (factor === undefined) {
    const units = Object.keys(UNITS).filter((known) => UNITS[known]!.of === kind);
    const expected = units.length === 0 ? "a number without a unit" : `a unit of ${units.join(", ")}`;
    throw invalidOption(`--assert: expected ${expected} in '${text}', got '${unit}'`);
  }
  const limit = Number(number) * factor;
  return { text, valueIn: read, holds: (value) => compare(value, limit) };
}

function figureOf(name: string, text: string): Figure {
  const percentile = percentileOf(name);
  if (percentile !== undefined) {
    return { kind: "time", read: ({ figures }) => figures.latency.percentile(percentile) };
  }
  if (Object.hasOwn(FIGURES, name)) return FIGURES[name]!;
  const [, of = "", which = ""] = /^(\w+?)(?:\.(\w[\w.]*))?$/.exec(name) ?? [];
  const metric = TOKEN_METRIC_NAMES.find((known) => known === of);
  const point = percentileOf(which);
  if (metric === undefined || (which !== "" && which !== "avg" && point === undefined)) {
    throw invalidOption(
      `--assert: expected p<number>, ${Object.keys(FIGURES).join(", ")}, or a figure of tokens such as ` +
        `time_to_first_token.p99 in '${text}', got '${name}'`,
    );
  }
  const isTime = metric.includes("time_to") || metric.includes("latency");
  return {
    kind: isTime ? "time" : "number",
    read: ({ figures }) => {
      const distribution = figures.tokens?.distributions[metric];
      if (distribution === undefined) return Number.NaN;
      return point === undefined ? distribution.mean : distribution.percentile(point);
    },
  };
}

function percentileOf(name: string): number | undefined {
  const [, number] = /^p(\d+(?:\.\d+)?)$/.exec(name) ?? [];
  const value = Number(number);
  return number !== undefined && value <= 100 ? value : undefined;
}
