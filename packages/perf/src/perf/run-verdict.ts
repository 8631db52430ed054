import { EXIT } from "../command/tool-command.js";
import { invalidOption } from "../command/tool-errors.js";
import { levelValue } from "../load/load-level.js";
import { type LevelResult, meetsLimit } from "../measure/level-result.js";
import type { LoadPlan } from "../measure/measure-level.js";
import { TOKEN_METRIC_NAMES } from "../measure/request-figures.js";
import { stageMs } from "../measure/server-watch.js";
import { levelName } from "../report/html-report.js";
import { sixDigits } from "../report/write-report.js";
import { WRONG_OUTPUT } from "../target/carrier.js";

export function bestOf(results: readonly LevelResult[]): LevelResult | undefined {
  return results
    .filter(meetsLimit)
    .toSorted((a, b) => levelValue(a.level) - levelValue(b.level))
    .at(-1);
}

/** Checks the conditions: at the best level of a search, else at every level. */
export function failedAssertions(
  results: readonly LevelResult[],
  kind: LoadPlan["kind"],
  assertions: readonly Assertion[],
): string[] {
  if (assertions.length === 0) return [];
  const best = kind === "search" ? bestOf(results) : undefined;
  const judged = kind === "search" ? (best === undefined ? [] : [best]) : results;
  if (judged.length === 0) return ["no level was measured that meets the latency limit"];
  return judged.flatMap((result) =>
    assertions.flatMap(({ text, valueIn, holds }) => {
      const value = valueIn(result);
      if (holds(value)) return [];
      const measured = Number.isNaN(value) ? "it was not measured" : `it is ${sixDigits(value)}`;
      return [`${text} does not hold at ${levelName(result)}: ${measured}`];
    }),
  );
}

/** Outputs differed from `validation_data`. */
function hasWrongOutputs({ figures }: LevelResult): boolean {
  return [...figures.failures.keys()].some((text) => text.startsWith(WRONG_OUTPUT));
}

export function exitCodeOf(
  results: readonly LevelResult[],
  kind: LoadPlan["kind"],
  hasFailed: boolean,
): number {
  const fault = results.find((result) => result.fault !== undefined)?.fault;
  if (fault !== undefined) return fault.kind === "no requests" ? EXIT.noRequests : EXIT.error;
  if (results.some(({ interrupted }) => interrupted) || results.length === 0) return EXIT.interrupted;
  if (results.some(hasWrongOutputs)) return EXIT.error;
  if (hasFailed) return EXIT.notMet;
  // A search takes unstable levels for levels over the limit.
  const isUnstable = ({ instability, overLimit }: LevelResult) => instability !== undefined && !overLimit;
  return kind !== "search" && results.some(isUnstable) ? EXIT.unstable : EXIT.ok;
}

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

export interface Assertion {
  readonly text: string;
  valueIn(result: LevelResult): number;
  holds(value: number): boolean;
}

/** Reads conditions such as `p99<50ms,throughput>1000`. */
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
