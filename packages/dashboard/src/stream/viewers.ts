import type { InferenceService, ObservedModel, ServerInspector } from "@tritonjs/core/frontend";
import { POINT_COLUMNS } from "../sample/model-samples.js";
import { type Sample, Sampler } from "../sample/sampler.js";
import { detailOf } from "../snapshot/detail.js";
import { summaryOf } from "../snapshot/summary.js";
import { EventStream } from "./event-stream.js";

/** The model version that a viewer has chosen. */
export interface ChosenModel {
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
