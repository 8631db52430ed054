import { readFileSync } from "node:fs";
import { performance } from "node:perf_hooks";
import { getHeapStatistics } from "node:v8";
import { type LatencyHistogram, residentBytes } from "@tritonjs/core/internal";
import { onAbort } from "@tritonjs/protocol";
import type { InferenceService } from "@tritonjs/server";
import type {
  ObservedCounters,
  ObservedInstance,
  ObservedModel,
  ServerInspector,
} from "@tritonjs/server/internal";

interface ChosenModel {
  readonly name: string;
  readonly version: string;
}

/** Texts of one sample, made when the first viewer needs them. */
interface SampleTexts {
  readonly sample: Sample;
  /** By the sample that the viewer got before: most viewers got the same. */
  readonly summaries: Map<number, string>;
  readonly details: Map<ObservedModel, string>;
}

/** The viewers of a server. They share one sampler, and the texts that it leads to. */
export class Viewers {
  readonly #sampler: Sampler;
  readonly #streams = new Set<EventStream>();
  #texts: SampleTexts | undefined;
  #closed = false;

  constructor(
    private readonly service: InferenceService,
    inspector: ServerInspector,
    intervalMs: number,
  ) {
    this.#sampler = new Sampler(inspector, intervalMs);
  }

  /**
   * Opens the events of a viewer: `history` once, then `summary`, `detail` of the chosen model, and `log` with new
   * messages. The first `summary` has the rows of all models. Later ones have those that changed, unless models came or
   * left.
   */
  open(chosen: ChosenModel | undefined, signal: AbortSignal): ReadableStream<Uint8Array> {
    const stream = new EventStream();
    if (this.#closed || signal.aborted) {
      stream.end();
      return stream.body;
    }
    this.#streams.add(stream);
    let seen = 0;
    let lastSample = 0;
    const leave = this.#sampler.join((sample) => {
      // A viewer that does not keep up misses samples, and gets the log once it does.
      if (!stream.ready) return;
      const found = chosen && findModel(sample, chosen);
      if (lastSample === 0) {
        const points = found?.samples?.points ?? [];
        stream.send("history", JSON.stringify({ columns: POINT_COLUMNS, points }));
      }
      const texts = this.#textsOf(sample);
      stream.send("summary", this.#summaryText(texts, lastSample));
      lastSample = sample.number;
      if (found !== undefined) stream.send("detail", detailText(texts, found));
      const entries = this.service.log.tail(seen);
      seen = entries.at(-1)?.number ?? seen;
      if (entries.length > 0) stream.send("log", JSON.stringify(entries));
    });
    const forget = onAbort(signal, () => stream.end());
    stream.onEnd = () => {
      leave();
      this.#streams.delete(stream);
      forget();
      if (this.#streams.size === 0) this.#texts = undefined;
    };
    return stream.body;
  }

  /** Ends all streams, and those that are opened from now on. */
  close(): void {
    this.#closed = true;
    for (const stream of [...this.#streams]) stream.end();
  }

  #textsOf(sample: Sample): SampleTexts {
    if (this.#texts?.sample !== sample) {
      this.#texts = { sample, summaries: new Map(), details: new Map() };
    }
    return this.#texts!;
  }

  #summaryText({ sample, summaries }: SampleTexts, since: number): string {
    let text = summaries.get(since);
    if (text === undefined) {
      text = JSON.stringify(summaryOf(this.service, sample, since));
      summaries.set(since, text);
    }
    return text;
  }
}

function findModel({ models }: Sample, { name, version }: ChosenModel): Sample["models"][number] | undefined {
  return models.find(({ model }) => model.name === name && String(model.version) === version);
}

function detailText({ details }: SampleTexts, { model, samples }: SampledModel): string {
  const known = details.get(model);
  if (known !== undefined) return known;
  const detail = { ...detailOf(model), point: samples?.last ?? null };
  const text = JSON.stringify(detail, (_, value: unknown) =>
    typeof value === "bigint" ? String(value) : value,
  );
  details.set(model, text);
  return text;
}

const encoder = new TextEncoder();

const MOST_WAITING = 8;

/** A body of server-sent events for one viewer. */
class EventStream {
  readonly body: ReadableStream<Uint8Array>;
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  #onEnd: () => void = () => {};

  constructor() {
    this.body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller;
        },
        cancel: () => {
          this.#controller = undefined;
          this.#onEnd();
        },
      },
      new CountQueuingStrategy({ highWaterMark: MOST_WAITING }),
    );
  }

  /** Called once, when the viewer has left or the stream was ended. */
  set onEnd(listener: () => void) {
    this.#onEnd = listener;
  }

  /** False while the viewer has not read what was sent before. Events of a state are then left out. */
  get ready(): boolean {
    return (this.#controller?.desiredSize ?? 0) > 0;
  }

  /** Sends an event whose data is JSON text. */
  send(event: string, json: string): void {
    this.#controller?.enqueue(encoder.encode(`event: ${event}\ndata: ${json}\n\n`));
  }

  /** Ends the stream. Calling it twice is harmless. */
  end(): void {
    const controller = this.#controller;
    if (controller === undefined) return;
    this.#controller = undefined;
    controller.close();
    this.#onEnd();
  }
}

/**
 * Summary for viewers in each interval: the server, and rows of model versions.
 *
 * @param since number of the sample that these viewers got before; 0 for none
 */
function summaryOf(service: InferenceService, sample: Sample, since: number): object {
  const { at, models, process } = sample;
  const hasAll = since < sample.listedAt;
  return {
    ...pagesData(service.inspector?.pages),
    at,
    ready: service.isReady(),
    process,
    cache: service.inspector?.cacheUsage ?? null,
    hasAll,
    models: models.filter(({ changedAt }) => hasAll || changedAt > since).map(rowOf),
  };
}

/** What extensions show, by their names. The members of the summary itself win. */
function pagesData(pages: ServerInspector["pages"] = new Map()): object {
  return Object.fromEntries([...pages].map(([name, page]) => [name, page.data()]));
}

function rowOf({ model, samples }: SampledModel): object {
  const { name, namespace, version, state, reason, isEnsemble, bound, counters } = model;
  return {
    ...{ name, namespace, version, state, reason, isEnsemble, bound },
    counts: counters && {
      succeeded: counters.succeeded,
      failed: counters.failed,
      instances: counters.instances,
      healthyInstances: counters.healthyInstances,
      busyInstances: counters.busyInstances,
    },
    point: samples?.last ?? null,
  };
}

/** Everything about one model version, for viewers that have chosen it. */
function detailOf({ name, namespace, version, activity }: ObservedModel): object {
  const all = activity?.();
  if (all === undefined) return { name, namespace, version };
  const { statistics, instances, ...others } = all;
  // Response statistics have up to 1024 rows and no place on the page.
  const { responseStats: _, ...counted } = statistics;
  return { name, namespace, version, ...others, statistics: counted, instances: instances.map(withMemory) };
}

/** Adds the memory of an instance with a process of its own, where the system tells it. */
function withMemory(instance: ObservedInstance): ObservedInstance {
  const { pid } = instance.details;
  if (instance.memoryBytes !== undefined || pid === undefined) return instance;
  return { ...instance, memoryBytes: processBytes(pid) };
}

/** Bytes of a page of memory on the platforms of Node. */
const PAGE_BYTES = 4096;

function processBytes(pid: string): number | undefined {
  if (process.platform !== "linux" || !/^\d+$/.test(pid)) return undefined;
  try {
    return Number(readFileSync(`/proc/${pid}/statm`, "utf8").split(" ")[1]) * PAGE_BYTES;
  } catch {
    // The process has just ended.
    return undefined;
  }
}

/** One look at the server, shared by all viewers. */
interface Sample {
  /** Number of the sample, from 1 on. */
  readonly number: number;
  /** Number of the first sample with these models in this order. */
  readonly listedAt: number;
  /** Wall time in milliseconds since 1970. */
  readonly at: number;
  readonly models: readonly SampledModel[];
  readonly process: ProcessUsage;
}

interface SampledModel {
  readonly model: ObservedModel;
  /** Undefined for a version that was never created. */
  readonly samples: ModelSamples | undefined;
  /** Number of the first sample with this row. */
  readonly changedAt: number;
}

/** True if both show the same row of the list. */
function hasSameRow(before: SampledModel, model: ObservedModel, previous: Point | undefined): boolean {
  const { state, reason, counters: a } = before.model;
  const b = model.counters;
  const isSame = state === model.state && reason === model.reason && before.model.bound === model.bound;
  if (!isSame || (a === undefined) !== (b === undefined)) return false;
  if (a === undefined || b === undefined) return true;
  return (
    a.succeeded === b.succeeded &&
    a.failed === b.failed &&
    a.instances === b.instances &&
    a.healthyInstances === b.healthyInstances &&
    a.busyInstances === b.busyInstances &&
    previous !== undefined &&
    before.samples!.hasSame(previous)
  );
}

/** Points of one model: five minutes at one a second. */
const MOST_POINTS = 300;

const FEWEST_POINTS = 60;

/** Points of all models together, which bounds the memory: a point has about 130 bytes. */
const POINTS_OF_ALL = 60_000;

/**
 * Looks at the server once in an interval, for all viewers together. Without a viewer there is no timer, no watch of
 * latencies and no memory.
 */
class Sampler {
  readonly #viewers = new Set<(sample: Sample) => void>();
  #timer: NodeJS.Timeout | undefined;
  #endWatch = () => {};
  #meter: ProcessMeter | undefined;
  /** Samples so far. It goes on when all viewers have left. */
  #number = 0;
  #last: Sample | undefined;

  constructor(
    private readonly inspector: ServerInspector,
    private readonly intervalMs: number,
  ) {}

  /**
   * Adds a viewer, which gets a sample at once and then one in each interval.
   *
   * @returns function that removes the viewer
   */
  join(viewer: (sample: Sample) => void): () => void {
    this.#viewers.add(viewer);
    if (this.#timer === undefined) this.#start();
    viewer(this.#look(false));
    return () => {
      if (this.#viewers.delete(viewer) && this.#viewers.size === 0) this.#stop();
    };
  }

  #start(): void {
    this.#endWatch = this.inspector.watchLatencies();
    this.#meter = new ProcessMeter();
    this.#look(true);
    // The server's sockets keep the process alive, not its viewers.
    this.#timer = setInterval(() => {
      const sample = this.#look(true);
      for (const viewer of [...this.#viewers]) viewer(sample);
    }, this.intervalMs).unref();
  }

  #stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#endWatch();
    this.#meter = undefined;
    this.#last = undefined;
  }

  /** @param fresh false to return the last sample again, for a viewer that has just come */
  #look(fresh: boolean): Sample {
    if (!fresh && this.#last !== undefined) return this.#last;
    const at = Date.now();
    const models = this.inspector.models();
    const kept = Math.max(
      FEWEST_POINTS,
      Math.min(MOST_POINTS, Math.floor(POINTS_OF_ALL / Math.max(1, models.length))),
    );
    const number = ++this.#number;
    const earlier = this.#last?.models ?? [];
    let listedAt = this.#last?.listedAt ?? number;
    if (earlier.length !== models.length) listedAt = number;
    let byKey: Map<string, SampledModel> | undefined;
    const sampled = models.map((model, index) => {
      let before = earlier[index];
      if (before === undefined || !isSameVersion(before.model, model)) {
        listedAt = number;
        byKey ??= new Map(earlier.map((one) => [modelKey(one.model), one]));
        before = byKey.get(modelKey(model));
      }
      const samples = model.counters && (before?.samples ?? new ModelSamples());
      const previous = samples?.last;
      samples?.add(at, model.counters!, kept);
      const isSame = before !== undefined && hasSameRow(before, model, previous);
      return { model, samples, changedAt: isSame ? before!.changedAt : number };
    });
    this.#last = { number, listedAt, at, models: sampled, process: this.#meter!.look() };
    return this.#last;
  }
}

function modelKey({ namespace, name, version }: ObservedModel): string {
  return JSON.stringify([namespace, name, version]);
}

function isSameVersion(a: ObservedModel, b: ObservedModel): boolean {
  return a.name === b.name && a.version === b.version && a.namespace === b.namespace;
}

/**
 * Measurements of one second of a model; null where nothing was measured. The order is that of
 * {@link POINT_COLUMNS}.
 */
type Point = readonly (number | null)[];

/** Names of the values of a point. Times are in milliseconds. */
const POINT_COLUMNS = [
  "at",
  "requestsPerSecond",
  "failuresPerSecond",
  "queued",
  "oldestMs",
  "meanBatch",
  "requestP50",
  "requestP90",
  "requestP99",
  "queueP50",
  "queueP99",
  "computeP50",
  "computeP99",
  "busyInstances",
] as const;

/** Samples over which quantiles are taken: ten seconds, so that a few requests a second give a steady picture. */
const WINDOW = 10;

interface Latencies {
  readonly request: LatencyHistogram;
  readonly queue: LatencyHistogram;
  readonly compute: LatencyHistogram;
}

/** The last minutes of one model version. */
class ModelSamples {
  readonly #points: Point[] = [];
  /** Latencies at the last samples, oldest first. Samples without a request in between share a copy. */
  readonly #latencies: Latencies[] = [];
  #previous: { readonly at: number; readonly counters: ObservedCounters } | undefined;

  get points(): readonly Point[] {
    return this.#points;
  }

  get last(): Point | undefined {
    return this.#points.at(-1);
  }

  /** True if the last point differs from an earlier one in its time alone. */
  hasSame(earlier: Point): boolean {
    const last = this.last!;
    for (let column = 1; column < last.length; column++) if (last[column] !== earlier[column]) return false;
    return true;
  }

  /**
   * Takes a sample.
   *
   * @param at wall time in milliseconds
   * @param kept number of points that are kept
   */
  add(at: number, counters: ObservedCounters, kept: number): void {
    const previous = this.#previous;
    this.#previous = { at, counters };
    // The counters restart from zero when a version is loaded again.
    const isContinued = previous !== undefined && counters.succeeded >= previous.counters.succeeded;
    const seconds = isContinued ? Math.max(0.001, (at - previous.at) / 1000) : 1;
    const rate = (name: "succeeded" | "failed") =>
      isContinued ? (counters[name] - previous.counters[name]) / seconds : null;
    const executions = isContinued ? counters.executions - previous.counters.executions : 0;
    const inferences = isContinued ? counters.inferences - previous.counters.inferences : 0;
    this.#points.push([
      at,
      rate("succeeded"),
      rate("failed"),
      counters.queued,
      counters.oldestMicroseconds / 1000,
      executions > 0 ? inferences / executions : null,
      ...this.#quantiles(
        counters.latencies,
        !isContinued || counters.succeeded > previous.counters.succeeded,
      ),
      counters.busyInstances,
    ]);
    if (this.#points.length > kept) this.#points.splice(0, this.#points.length - kept);
  }

  #quantiles(live: Latencies | undefined, changed: boolean): (number | null)[] {
    if (live === undefined) return new Array<null>(7).fill(null);
    const earlier = this.#latencies[0];
    const last = this.#latencies.at(-1);
    const copy =
      changed || last === undefined
        ? { request: live.request.copy(), queue: live.queue.copy(), compute: live.compute.copy() }
        : last;
    this.#latencies.push(copy);
    if (this.#latencies.length > WINDOW) this.#latencies.shift();
    // Nothing was answered in the window.
    if (earlier === copy) return new Array<null>(7).fill(null);
    const since = (name: keyof Latencies) =>
      earlier === undefined ? copy[name] : copy[name].since(earlier[name]);
    const request = since("request");
    const queue = since("queue");
    const compute = since("compute");
    return [
      request.quantile(0.5),
      request.quantile(0.9),
      request.quantile(0.99),
      queue.quantile(0.5),
      queue.quantile(0.99),
      compute.quantile(0.5),
      compute.quantile(0.99),
    ].map((value) => value ?? null);
  }
}

interface ProcessUsage {
  /** Processor time as a share of one core: 1.5 is one core and a half. */
  readonly cpu: number;
  /** Share of time in which the event loop was busy, from 0 to 1. */
  readonly eventLoop: number;
  readonly residentBytes: number;
  readonly heapBytes: number;
}

class ProcessMeter {
  #cpu = process.cpuUsage();
  #loop = performance.eventLoopUtilization();
  #at = performance.now();

  look(): ProcessUsage {
    const now = performance.now();
    const { user, system } = process.cpuUsage(this.#cpu);
    const eventLoop = performance.eventLoopUtilization(this.#loop).utilization;
    const elapsedMs = Math.max(1, now - this.#at);
    this.#cpu = process.cpuUsage();
    this.#loop = performance.eventLoopUtilization();
    this.#at = now;
    return {
      cpu: (user + system) / 1000 / elapsedMs,
      eventLoop,
      residentBytes: residentBytes(),
      heapBytes: getHeapStatistics().used_heap_size,
    };
  }
}
