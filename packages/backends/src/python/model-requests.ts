import type { ExecutorContext } from "@tritonjs/core/backend";
import type { LogSubject, ModelCaller, TensorAnswer, TensorCaller } from "@tritonjs/core/internal";
import { errorFor, TritonError } from "@tritonjs/protocol";
import type { Registry } from "prom-client";
import { FrameBody, readTensors } from "./frames.js";
import type { PythonGpuMemory } from "./gpu-memory.js";
import {
  type FromPython,
  parametersJson,
  readCallScalars,
  readParameters,
  type WireAsk,
  type WireCall,
  writeError,
} from "./messages.js";

/**
 * Serves the requests of a Python model to the server other than inference: metrics, loading of models, log messages.
 */
export class PythonServerRequests {
  readonly #metrics: ModelMetrics;

  constructor(
    private readonly context: Pick<ExecutorContext, "control" | "log" | "metrics" | "info">,
    private readonly send: (header: object) => void,
    /** Returns the fields of lines about the requests that run now. */
    private readonly running: () => LogSubject,
  ) {
    this.#metrics = new ModelMetrics(context.metrics());
  }

  answer(ask: WireAsk, body: Uint8Array): void {
    const { call } = ask;
    this.#do(ask, body).then(
      (value) => this.send({ type: "answer", call, value: value ?? null }),
      (thrown) => this.send({ type: "answer", call, error: writeError(thrown) }),
    );
  }

  forget({ what, id }: Extract<FromPython, { type: "forget" }>): void {
    if (what === "deleteMetric") this.#metrics.deleteMetric(id);
    else this.#metrics.deleteFamily(id);
  }

  log({ level, message }: Extract<FromPython, { type: "log" }>): void {
    const { log, info } = this.context;
    const about = { model: info.modelName, version: info.modelVersion, ...this.running() };
    if (level === "ERROR") log.error(message, about);
    else if (level === "WARNING") log.warning(message, about);
    else if (level === "INFO") log.info(message, about);
    else log.verbose(1, message, about);
  }

  close(): void {
    this.#metrics.clear();
  }

  async #do({ what, arguments: given, files }: WireAsk, body: Uint8Array): Promise<unknown> {
    const metrics = this.#metrics;
    const name = String(given[0]);
    switch (what) {
      case "family":
        return metrics.createFamily(...(given as Parameters<ModelMetrics["createFamily"]>));
      case "metric":
        return metrics.createMetric(...(given as Parameters<ModelMetrics["createMetric"]>));
      case "increment":
      case "set":
      case "observe":
        return metrics.change(given[0] as number, what, given[1] as number);
      case "value":
        return metrics.value(given[0] as number);
      case "ready":
        return this.#control.isReady(name, String(given[1]));
      case "unload":
        return this.#control.unload(name, { unloadDependents: given[1] === true });
      case "load": {
        const config = given[1] === "" ? {} : { config: String(given[1]) };
        const entries = files.map(
          ({ name: path, offset, size }) =>
            [path.replace(/^file:/, ""), new Uint8Array(body.subarray(offset, offset + size))] as const,
        );
        const contents = entries.length === 0 ? {} : { files: new Map(entries) };
        return this.#control.load(name, { ...config, ...contents });
      }
      default: {
        const { modelName } = this.context.info;
        throw errorFor(
          "INTERNAL",
          `model '${modelName}' asked the server for '${what}', which it does not know`,
        );
      }
    }
  }

  get #control() {
    const { control, info } = this.context;
    if (control !== undefined) return control;
    throw errorFor("NO_SERVER", `model '${info.modelName}' runs without a server, so it cannot ask one`);
  }
}

/** Responses in flight to a model that does not take them. */
const WINDOW = 16;

interface OpenCall {
  readonly controller: AbortController;
  /** Asks the called model to stop sending responses; for calls with any number of responses. */
  readonly stop: AbortController | undefined;
  underWay: number;
  wake: (() => void) | undefined;
}

type CallMessage = Extract<FromPython, { type: "infer" | "taken" | "stop" | "end" }>;

export class PythonCallHost {
  readonly #open = new Map<number, OpenCall>();

  /** @param modelsOf calls models on behalf of a batch; undefined when the batch is complete */
  constructor(
    private readonly send: (header: object, body: FrameBody) => void,
    private readonly modelsOf: (batch: number) => (ModelCaller & Partial<TensorCaller>) | undefined,
    /** Memory of GPUs that the process shares now. */
    private readonly gpu: () => PythonGpuMemory | undefined,
  ) {}

  take(message: CallMessage, body: Uint8Array): void {
    const open = this.#open.get(message.call);
    if (message.type === "infer") this.#start(message, body);
    else if (message.type === "taken") taken(open);
    // The model asks for no more responses. It still takes those that arrive.
    else if (message.type === "stop") open?.stop?.abort();
    else this.#end(open);
  }

  #start(call: WireCall, body: Uint8Array): void {
    const stop = call.stream ? new AbortController() : undefined;
    const open: OpenCall = { controller: new AbortController(), stop, underWay: 0, wake: undefined };
    this.#open.set(call.call, open);
    void this.#run(call, body, open)
      .catch((error) => this.#answer(call.call, { outcome: refusal(call, error), final: true }))
      .finally(() => this.#open.delete(call.call));
  }

  #end(open: OpenCall | undefined): void {
    open?.controller.abort();
    open?.wake?.();
  }

  endAll(): void {
    for (const open of [...this.#open.values()]) this.#end(open);
  }

  async #run(call: WireCall, body: Uint8Array, open: OpenCall): Promise<void> {
    const models = this.modelsOf(call.batch);
    if (models?.callWithTensors === undefined) {
      this.gpu()?.takeBackAll(call.inputs);
      const text = `the call of model '${call.model}' was cancelled: the batch that made it has ended`;
      throw errorFor("CALLER_ENDED", text);
    }
    const gpu = this.gpu();
    const inputs = readTensors(call.inputs, body, gpu, () => true);
    const answers = models.callWithTensors(call.model, inputs, {
      signal: open.controller.signal,
      stopSignal: open.stop?.signal,
      decoupled: call.stream,
      requestedOutputs: call.requested,
      ...(gpu !== undefined && call.prefersGpu === true && { deviceOutputs: call.requested }),
      id: call.id,
      parameters: readParameters(call.parameters),
      ...(call.version === -1 ? {} : { modelVersion: call.version }),
      ...readCallScalars(call),
    });
    for await (const answer of answers) {
      this.#answer(call.call, answer);
      open.underWay++;
      while (open.underWay >= WINDOW && !answer.final && !open.controller.signal.aborted) {
        await new Promise<void>((resolve) => {
          open.wake = resolve;
        });
      }
    }
  }

  #answer(call: number, { outcome, final }: TensorAnswer): void {
    const body = new FrameBody();
    const header = { type: "answer", call, last: final };
    if (TritonError.is(outcome)) this.send({ ...header, error: writeError(outcome) }, body);
    else if (outcome === undefined) this.send(header, body);
    else {
      const outputs = body.addTensors(outcome.outputs, this.gpu());
      this.send({ ...header, outputs, parameters: parametersJson(outcome.parameters) }, body);
    }
  }
}

function taken(open: OpenCall | undefined): void {
  if (open === undefined) return;
  open.underWay--;
  open.wake?.();
}

/** The error of a call that was not made, in Triton's words. */
function refusal({ model }: WireCall, thrown: unknown): TritonError {
  const error = TritonError.from(thrown);
  if (error.code === "CANCELLED") return error;
  const text = `Model ${model} - Error when running inference: ${refusalText(model, error)}`;
  return errorFor("INTERNAL", text, { cause: error });
}

function refusalText(model: string, { code, message }: TritonError): string {
  // The text of every look-up of a model or version that is unknown or not ready.
  if (message.startsWith("Request for unknown model: ")) {
    return `Failed for execute the inference request. Model '${model}' is not ready.`;
  }
  return code === "UNSUPPORTED"
    ? `Model ${model} is using the decoupled. The current BLS request call doesn't support models using the ` +
        "decoupled transaction policy. Please use 'decoupled=True' argument to the 'exec' or 'async_exec' calls for " +
        "decoupled models.'"
    : message;
}

type Kind = "COUNTER" | "GAUGE" | "HISTOGRAM";
type Labels = Readonly<Record<string, string>>;

/** One metric, with the number of models' objects that refer to it. */
interface Series {
  readonly labels: Labels;
  readonly bounds: readonly number[];
  readonly buckets: number[];
  users: number;
  value: number;
  count: number;
}

/**
 * The part of a registry that is used. It takes any object with `name`, `get` and `reset`, but its type names the
 * classes of prom-client.
 */
interface FamilyRegistry {
  registerMetric(family: object): void;
}

/** A family on the metrics page. Unlike a family of prom-client it takes any labels, and can lose metrics. */
class Family {
  readonly series = new Map<string, Series>();
  readonly aggregator = "sum";
  users = 0;

  constructor(
    readonly name: string,
    readonly help: string,
    readonly kind: Kind,
  ) {}

  async get(): Promise<object> {
    const { name, help, aggregator } = this;
    const values = [...this.series.values()].flatMap((one) => this.#values(one));
    return { name, help, aggregator, type: this.kind.toLowerCase(), values };
  }

  reset(): void {}

  #values({ labels, value, count, bounds, buckets }: Series): object[] {
    if (this.kind !== "HISTOGRAM") return [{ labels, value }];
    let below = 0;
    const named = (suffix: string) => `${this.name}_${suffix}`;
    const rows = bounds.map((bound, i) => {
      below += buckets[i]!;
      return { labels: { ...labels, le: bound }, value: below, metricName: named("bucket") };
    });
    return [
      ...rows,
      { labels: { ...labels, le: "+Inf" }, value: count, metricName: named("bucket") },
      { labels, value, metricName: named("sum") },
      { labels, value: count, metricName: named("count") },
    ];
  }
}

const familiesOf = new WeakMap<Registry, Map<string, Family>>();

/** The metrics of one process of a Python model. They are on the page while the objects that refer to them exist. */
class ModelMetrics {
  readonly #families = new Map<number, Family>();
  readonly #metrics = new Map<number, { readonly family: Family; readonly key: string }>();
  #next = 1;

  constructor(private readonly registry: Registry) {}

  /** @throws TritonError ALREADY_EXISTS for a name that is taken by another metric */
  createFamily(name: string, help: string, kind: Kind): number {
    const shared = familiesOf.get(this.registry) ?? new Map<string, Family>();
    familiesOf.set(this.registry, shared);
    let family = shared.get(name);
    if (family === undefined || family.kind !== kind) {
      if (family !== undefined || this.registry.getSingleMetric(name) !== undefined) {
        const text = `metric '${name}' already exists with another kind than ${kind}: choose another name`;
        throw new TritonError("ALREADY_EXISTS", text);
      }
      if (!/^[a-zA-Z_:][a-zA-Z0-9_:]*$/.test(name)) {
        const text = `invalid name of a metric '${name}': expected letters, digits, '_' and ':', and no digit first`;
        throw errorFor("INVALID_METRIC", text);
      }
      family = new Family(name, help, kind);
      shared.set(name, family);
      const page: FamilyRegistry = this.registry;
      page.registerMetric(family);
    }
    family.users++;
    this.#families.set(this.#next, family);
    return this.#next++;
  }

  createMetric(familyId: number, labels: Labels | null, buckets: readonly number[] | null): number {
    const family = this.#families.get(familyId);
    if (family === undefined) throw gone();
    for (const label of Object.keys(labels ?? {})) {
      if (!/^[a-zA-Z_][a-zA-Z0-9_]*$/.test(label)) {
        const text = `invalid label '${label}' of metric '${family.name}': expected letters, digits and '_', and no digit first`;
        throw errorFor("INVALID_METRIC", text);
      }
    }
    const key = JSON.stringify(Object.entries(labels ?? {}).sort());
    const bounds = buckets ?? [];
    if (bounds.some((bound, i) => !(i === 0 || bound > bounds[i - 1]!))) {
      throw errorFor("INVALID_METRIC", `buckets of metric '${family.name}': expected ascending order`);
    }
    const series = family.series.get(key) ?? {
      labels: labels ?? {},
      bounds,
      buckets: bounds.map(() => 0),
      users: 0,
      value: 0,
      count: 0,
    };
    series.users++;
    family.series.set(key, series);
    this.#metrics.set(this.#next, { family, key });
    return this.#next++;
  }

  change(id: number, how: "increment" | "set" | "observe", value: number): void {
    const { family, series } = this.#find(id);
    const { kind } = family;
    if (how === "increment" && kind === "COUNTER" && value < 0) {
      throw errorFor("INVALID_METRIC", "TRITONSERVER_METRIC_KIND_COUNTER does not support negative value");
    }
    const fits =
      how === "set" ? kind === "GAUGE" : how === "observe" ? kind === "HISTOGRAM" : kind !== "HISTOGRAM";
    if (!fits) {
      throw new TritonError("UNSUPPORTED", `TRITONSERVER_METRIC_KIND_${kind} does not support ${VERBS[how]}`);
    }
    if (how === "set") series.value = value;
    else series.value += value;
    if (how !== "observe") return;
    series.count++;
    const bucket = series.bounds.findIndex((bound) => value <= bound);
    if (bucket >= 0) series.buckets[bucket]!++;
  }

  value(id: number): number {
    const { family, series } = this.#find(id);
    if (family.kind === "HISTOGRAM") {
      throw new TritonError("UNSUPPORTED", "TRITONSERVER_METRIC_KIND_HISTOGRAM does not support Value");
    }
    return series.value;
  }

  deleteMetric(id: number): void {
    const found = this.#metrics.get(id);
    this.#metrics.delete(id);
    const series = found?.family.series.get(found.key);
    if (found === undefined || series === undefined || --series.users > 0) return;
    found.family.series.delete(found.key);
  }

  deleteFamily(id: number): void {
    const family = this.#families.get(id);
    this.#families.delete(id);
    if (family === undefined || --family.users > 0) return;
    familiesOf.get(this.registry)?.delete(family.name);
    this.registry.removeSingleMetric(family.name);
  }

  clear(): void {
    for (const id of [...this.#metrics.keys()]) this.deleteMetric(id);
    for (const id of [...this.#families.keys()]) this.deleteFamily(id);
  }

  #find(id: number): { readonly family: Family; readonly series: Series } {
    const found = this.#metrics.get(id);
    const series = found?.family.series.get(found.key);
    if (found === undefined || series === undefined) throw gone();
    return { family: found.family, series };
  }
}

const VERBS = { increment: "Increment", set: "Set", observe: "Observe" } as const;

function gone(): TritonError {
  const text =
    "Invalid metric operation as the corresponding 'MetricFamily' has been deleted. The 'MetricFamily' object should " +
    "be deleted AFTER its corresponding 'Metric' objects have been deleted.";
  return new TritonError("INTERNAL", text);
}
