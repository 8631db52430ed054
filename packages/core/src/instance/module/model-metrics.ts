import { TritonError } from "@tritonjs/protocol";
import type { MetricChange, MetricFamily } from "../../observe/metric-change.js";

/** Options of a family of metrics. */
export interface JsMetricOptions {
  /** Name in the form of Prometheus: `words_total`. */
  readonly name: string;
  readonly help: string;
  /** @default none */
  readonly labelNames?: readonly string[];
}

/** Values of all labels of a family. */
export type JsMetricLabels = Readonly<Record<string, string>>;

/**
 * A model's own metrics, on the metrics page of the server. Families of the same name are shared by all instances and
 * models.
 *
 * @example
 * ```ts
 * initialize({ metrics }) {
 *   this.words = metrics.counter({ name: "words_total", help: "Words seen", labelNames: ["model"] });
 * }
 * execute(requests, { modelName }) {
 *   this.words.inc(requests.length, { model: modelName });
 * }
 * ```
 */
export interface JsModelMetrics {
  /** Can only increase. */
  counter(options: JsMetricOptions): { inc(value?: number, labels?: JsMetricLabels): void };
  /** Can increase and decrease; with `set`, the last value of any instance counts. */
  gauge(options: JsMetricOptions): {
    inc(value?: number, labels?: JsMetricLabels): void;
    set(value: number, labels?: JsMetricLabels): void;
  };
  /** @param options `buckets` are upper bounds, in ascending order */
  histogram(options: JsMetricOptions & { readonly buckets?: readonly number[] }): {
    observe(value: number, labels?: JsMetricLabels): void;
  };
}

/** Creates metrics whose changes are passed to `send` in one call, at the end of the turn in which they were made. */
export function modelMetrics(send: (changes: readonly MetricChange[]) => void): JsModelMetrics {
  let pending: MetricChange[] = [];
  const flush = () => {
    const changes = pending;
    pending = [];
    send(changes);
  };
  const change =
    (family: MetricFamily, action: MetricChange["action"]) =>
    (value: number, labels: JsMetricLabels = {}) => {
      check(family, value, labels);
      if (pending.length === 0) queueMicrotask(flush);
      pending.push({ family, labels: { ...labels }, action, value });
    };
  return {
    counter: (options) => {
      const add = change(familyOf("counter", options), "add");
      return { inc: (value = 1, labels) => add(value, labels) };
    },
    gauge: (options) => {
      const family = familyOf("gauge", options);
      const [add, set] = [change(family, "add"), change(family, "set")];
      return { inc: (value = 1, labels) => add(value, labels), set };
    },
    histogram: ({ buckets, ...options }) => ({
      observe: change({ ...familyOf("histogram", options), buckets }, "observe"),
    }),
  };
}

function familyOf(
  kind: MetricFamily["kind"],
  { name, help, labelNames = [] }: JsMetricOptions,
): MetricFamily {
  if (!/^[a-zA-Z_:][a-zA-Z0-9_:]*$/.test(name))
    throw wrong(
      `invalid name of a metric '${name}': expected letters, digits, '_' and ':', and no digit first`,
    );
  return { kind, name, help: String(help), labelNames: [...labelNames] };
}

function check({ kind, name, labelNames }: MetricFamily, value: number, labels: JsMetricLabels): void {
  if (!Number.isFinite(value))
    throw wrong(`metric '${name}': expected a finite number, got ${String(value)}`);
  if (kind === "counter" && value < 0)
    throw wrong(`counter '${name}': expected a number of at least 0, got ${value}`);
  const unknown = Object.keys(labels).find((label) => !labelNames.includes(label));
  if (unknown !== undefined) {
    throw wrong(`unknown label '${unknown}' of metric '${name}': expected [${labelNames.join(", ")}]`);
  }
}

function wrong(text: string): TritonError {
  return new TritonError("INVALID_ARG", text, { reason: "INVALID_METRIC" });
}
