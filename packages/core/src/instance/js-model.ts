import { errorFor, type ModelConfig, type TensorSpec, type TritonError } from "@tritonjs/protocol";
import type {
  Answer,
  AnyInferFunc,
  InferContext,
  InferFuncResult,
  InferRequest,
} from "../callback/infer-func.js";
import type { InstanceDevice } from "../callback/instance-device.js";
import type { AutoCompleteConfig } from "../config/auto-complete-config.js";
import type { Log, LogSubject } from "../observe/log.js";
import type { MetricChange, MetricFamily } from "../observe/metric-families.js";
import type { ModelControl } from "./backend.js";

/** The server's log, for a model. */
export interface JsModelLogger {
  error(message: string): void;
  warning(message: string): void;
  info(message: string): void;
  /** @param level from 1; the message is written if the server's verbose level is at least this. @default 1 */
  verbose(message: string, level?: number): void;
}

/** Loads and unloads models of the server's repository, for servers whose models are loaded explicitly. */
export interface JsModelControl {
  /**
   * @param given a configuration in JSON, and files by path, which replace those in the repository
   * @throws TritonError like `Triton.loadModel`
   */
  loadModel(
    name: string,
    given?: { readonly config?: string; readonly files?: ReadonlyMap<string, Uint8Array> },
  ): Promise<void>;
  /** @throws TritonError like `Triton.unloadModel` */
  unloadModel(name: string, given?: { readonly unloadDependents?: boolean }): Promise<void>;
  /** True if a model can be called. @param version the latest by default */
  isModelReady(name: string, version?: number): Promise<boolean>;
}

/** Arguments of `initialize`, when an instance starts. */
export interface JsModelArgs {
  readonly modelName: string;
  readonly modelVersion: number;
  readonly modelConfig: ModelConfig;
  /** Triton's name of the instance: `linear_0`. */
  readonly instanceName: string;
  /** Position of the instance among those of the model. */
  readonly instanceIndex: number;
  readonly device: InstanceDevice;
  /** Directory of the model in its repository; directory of the module for a model that was bound. */
  readonly modelDirectory: string;
  readonly logger: JsModelLogger;
  readonly metrics: JsModelMetrics;
  readonly models: JsModelControl;
}

type AnySpecs = readonly TensorSpec[];

/**
 * One instance of a JavaScript model. The class is the default export of its module, or its export `TritonJsModel`.
 *
 * @typeParam I inputs, for the types of `requests`
 * @typeParam O outputs, for the type of the results
 * @example
 * ```ts
 * export default class Scale implements JsModel {
 *   static autoCompleteConfig(config: AutoCompleteConfig) {
 *     config.addInput({ name: "x", dataType: "FP32", dims: [-1] });
 *     config.addOutput({ name: "y", dataType: "FP32", dims: [-1] });
 *     config.setMaxBatchSize(8);
 *   }
 *   initialize({ modelConfig, logger }: JsModelArgs) {
 *     this.factor = Number(modelConfig.parameters.factor?.stringValue ?? 1);
 *     logger.info(`scales by ${this.factor}`);
 *   }
 *   execute(requests) {
 *     return requests.map(({ inputs: { x } }) => ({ y: ndarray(x.data.map((v) => v * this.factor), x.shape) }));
 *   }
 * }
 * ```
 */
export interface JsModel<I extends AnySpecs = AnySpecs, O extends AnySpecs = AnySpecs> {
  /** Called once, before the first request. If it throws, the model is not loaded, and the error is the reason. */
  initialize?(args: JsModelArgs): void | Promise<void>;
  /**
   * Answers the requests of a batch. Returns a list with one result per request, in order: the outputs by name, an
   * `Error` for this request alone, or `RESCHEDULE`. A decoupled model yields such lists, or returns nothing and
   * answers through each request's `responseSender`. If it throws, all requests of the batch fail. May also be a field
   * with a callback made by `batch`, `sample` or `stepwise`.
   */
  execute:
    | ((
        requests: readonly InferRequest<I, O>[],
        context: InferContext,
      ) => Answer<readonly (InferFuncResult<O> | undefined)[]> | Promise<void> | void)
    | AnyInferFunc;
  /** Called once, after the last request, when the instance ends regularly. */
  finalize?(): void | Promise<void>;
}

/** The class of a JavaScript model. */
export interface JsModelClass {
  new (): JsModel;
  /** Completes the configuration of a model in a repository, before any instance is created. */
  autoCompleteConfig?(config: AutoCompleteConfig): void | Promise<void>;
}

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
  return errorFor("INVALID_METRIC", text);
}

export type ControlAsk =
  | {
      readonly what: "load";
      readonly name: string;
      readonly config?: string | undefined;
      readonly files?: ReadonlyMap<string, Uint8Array> | undefined;
    }
  | { readonly what: "unload"; readonly name: string; readonly unloadDependents?: boolean | undefined }
  | { readonly what: "ready"; readonly name: string; readonly version: string };

/** Creates a model's control of other models; `ask` receives its requests. */
export function modelControl(ask: (ask: ControlAsk) => Promise<unknown>): JsModelControl {
  return {
    loadModel: async (name, { config, files } = {}) => {
      await ask({ what: "load", name, config, files });
    },
    unloadModel: async (name, { unloadDependents } = {}) => {
      await ask({ what: "unload", name, unloadDependents });
    },
    isModelReady: async (name, version) =>
      (await ask({ what: "ready", name, version: version === undefined ? "" : String(version) })) === true,
  };
}

/** Executes a model's request. @throws TritonError like `Triton.loadModel` and `Triton.unloadModel` */
export async function answerControl(control: ModelControl, ask: ControlAsk): Promise<boolean | undefined> {
  if (ask.what === "ready") return control.isReady(ask.name, ask.version);
  if (ask.what === "unload") await control.unload(ask.name, ask);
  else await control.load(ask.name, ask);
  return undefined;
}

export interface LogLine {
  readonly level: "error" | "warning" | "info" | "verbose";
  readonly message: string;
  readonly verboseLevel?: number | undefined;
}

export function modelLogger(write: (line: LogLine) => void): JsModelLogger {
  const at = (level: LogLine["level"]) => (message: string) => write({ level, message: String(message) });
  return {
    error: at("error"),
    warning: at("warning"),
    info: at("info"),
    verbose: (message, verboseLevel = 1) =>
      write({ level: "verbose", message: String(message), verboseLevel: Number(verboseLevel) }),
  };
}

export function writeLine(log: Log, { level, message, verboseLevel = 1 }: LogLine, about: LogSubject): void {
  if (level === "verbose") log.verbose(verboseLevel, message, about);
  else log[level](message, about);
}

export function notServed(modelName: string): TritonError {
  return errorFor("NO_SERVER", `model '${modelName}' runs without a server, so it cannot ask one`);
}
