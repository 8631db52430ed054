import { readFileSync } from "node:fs";
import type { InferenceService } from "@tritonjs/core/frontend";
import type { ObservedInstance, ObservedModel, ServerInspector } from "@tritonjs/core/internal";
import { POINT_COLUMNS, type Sample, type SampledModel, Sampler } from "./sampler.js";

/** The model version that a viewer has chosen. */
interface ChosenModel {
  readonly name: string;
  readonly version: string;
}

/** Texts of one sample, made when the first viewer needs them. */
interface SampleTexts {
  readonly sample: Sample;
  readonly summary: string;
  readonly details: Map<ObservedModel, string>;
}

/** The viewers of a server. They share one sampler, and the texts that it leads to. */
export class Viewers {
  readonly #service: InferenceService;
  readonly #sampler: Sampler;
  readonly #streams = new Set<EventStream>();
  #texts: SampleTexts | undefined;
  #closed = false;

  constructor(service: InferenceService, inspector: ServerInspector, intervalMs: number) {
    this.#service = service;
    this.#sampler = new Sampler(inspector, intervalMs);
  }

  /** True while a viewer is connected and the server is sampled. */
  get watching(): boolean {
    return this.#sampler.running;
  }

  /**
   * Opens the events of a viewer: `history` once, then `summary`, `detail` of the chosen model, and `log` with new
   * messages.
   */
  open(chosen: ChosenModel | undefined, signal: AbortSignal): ReadableStream<Uint8Array> {
    const stream = new EventStream();
    if (this.#closed || signal.aborted) {
      stream.end();
      return stream.body;
    }
    this.#streams.add(stream);
    let seen = 0;
    let hasHistory = false;
    const leave = this.#sampler.join((sample) => {
      // A viewer that does not keep up misses samples, and gets the log once it does.
      if (!stream.ready) return;
      const found = chosen && findModel(sample, chosen);
      if (!hasHistory) {
        hasHistory = true;
        const points = found?.samples?.points ?? [];
        stream.send("history", JSON.stringify({ columns: POINT_COLUMNS, points }));
      }
      const texts = this.#textsOf(sample);
      stream.send("summary", texts.summary);
      if (found !== undefined) stream.send("detail", detailText(texts, found.model));
      const entries = this.#service.log.tail(seen);
      seen = entries.at(-1)?.number ?? seen;
      if (entries.length > 0) stream.send("log", JSON.stringify(entries));
    });
    const end = () => stream.end();
    stream.onEnd = () => {
      leave();
      this.#streams.delete(stream);
      signal.removeEventListener("abort", end);
      if (this.#streams.size === 0) this.#texts = undefined;
    };
    signal.addEventListener("abort", end, { once: true });
    return stream.body;
  }

  /** Ends all streams, and those that are opened from now on. */
  close(): void {
    this.#closed = true;
    for (const stream of [...this.#streams]) stream.end();
  }

  #textsOf(sample: Sample): SampleTexts {
    if (this.#texts?.sample !== sample) {
      const summary = JSON.stringify(summaryOf(this.#service, sample));
      this.#texts = { sample, summary, details: new Map() };
    }
    return this.#texts!;
  }
}

function findModel({ models }: Sample, { name, version }: ChosenModel): Sample["models"][number] | undefined {
  return models.find(({ model }) => model.name === name && String(model.version) === version);
}

function detailText({ details }: SampleTexts, model: ObservedModel): string {
  const known = details.get(model);
  if (known !== undefined) return known;
  const text = JSON.stringify(detailOf(model), (_, value: unknown) =>
    typeof value === "bigint" ? String(value) : value,
  );
  details.set(model, text);
  return text;
}

const encoder = new TextEncoder();

/** Events that may wait for a slow viewer. */
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

/** Rows that a summary has at most. */
const MOST_ROWS = 1000;

/** What every viewer gets in each interval: the server, and a row for each model version. */
function summaryOf(service: InferenceService, sample: Sample): object {
  const { at, models, process } = sample;
  return {
    at,
    ready: service.isReady(),
    process,
    cache: service.inspector?.cacheUsage ?? null,
    modelCount: models.length,
    models: models.slice(0, MOST_ROWS).map(rowOf),
  };
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
  return { ...instance, memoryBytes: residentBytes(pid) };
}

/** Bytes of a page of memory on the platforms of Node. */
const PAGE_BYTES = 4096;

function residentBytes(pid: string): number | undefined {
  if (process.platform !== "linux" || !/^\d+$/.test(pid)) return undefined;
  try {
    return Number(readFileSync(`/proc/${pid}/statm`, "utf8").split(" ")[1]) * PAGE_BYTES;
  } catch {
    // The process has just ended.
    return undefined;
  }
}
