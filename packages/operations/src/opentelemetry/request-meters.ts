import type { Attributes, Meter } from "@opentelemetry/api";
import {
  type DiagnosedRequest,
  type DiagnosticMessages,
  onDiagnostics,
  onExecution,
} from "@tritonjs/core/diagnostics";
import { generatorAttributes, type TextGenerators, tokenCounts } from "./text-generators.js";

/** Bounds of durations in seconds, as the semantic conventions advise for servers. */
const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** Times since the acceptance of a request at which its responses came, and tokens of all but the first of them. */
interface GeneratedTimes {
  readonly firstMs: number;
  lastMs: number;
  tokensAfterFirst: number;
}

const NOT_GENERATED: GeneratedTimes = { firstMs: 0, lastMs: 0, tokensAfterFirst: 0 };

/**
 * Measures the requests and batches of all servers of this process, from their diagnostics channels.
 *
 * @returns function that ends the measurement
 */
export function meterRequests(meter: Meter, generators: TextGenerators): () => void {
  const seconds = { unit: "s", advice: { explicitBucketBoundaries: SECONDS } };
  const duration = meter.createHistogram("tritonjs.request.duration", {
    ...seconds,
    description: "Time from the acceptance of a request to its last answer.",
  });
  const active = meter.createUpDownCounter("tritonjs.request.active", {
    unit: "{request}",
    description: "Requests that were accepted and not yet answered.",
  });
  const batchSize = meter.createHistogram("tritonjs.batch.size", {
    unit: "{row}",
    description: "Rows of a batch.",
    advice: { explicitBucketBoundaries: [1, 2, 4, 8, 16, 32, 64, 128, 256] },
  });
  const batchDuration = meter.createHistogram("tritonjs.batch.duration", {
    ...seconds,
    description: "Time in which an instance ran a batch.",
  });
  const generation = meter.createHistogram("gen_ai.server.request.duration", {
    ...seconds,
    description: "Time from the acceptance of a request to a text generator to its last answer.",
  });
  const firstToken = meter.createHistogram("gen_ai.server.time_to_first_token", {
    ...seconds,
    description: "Time from the acceptance of a request to a text generator to its first response.",
  });
  const perToken = meter.createHistogram("gen_ai.server.time_per_output_token", {
    ...seconds,
    description: "Mean time of an output token after the first one, where the responses tell their tokens.",
  });
  /** Times and tokens of the responses to requests to text generators. */
  const generated = new WeakMap<DiagnosedRequest, GeneratedTimes>();
  /** Requests that were counted as active; those accepted before are not. */
  const counted = new WeakSet<DiagnosedRequest>();
  const startedAt = new WeakMap<object, number>();
  const responded = ({ request, outputs, durationMs }: DiagnosticMessages["tritonjs:request:response"]) => {
    const { model } = request;
    if (!Object.hasOwn(generators, model)) return;
    const times = generated.get(request);
    if (times === undefined) {
      firstToken.record(durationMs / 1000, generatorAttributes(model, generators[model]!));
      generated.set(request, { firstMs: durationMs, lastMs: durationMs, tokensAfterFirst: 0 });
      return;
    }
    times.lastMs = durationMs;
    times.tokensAfterFirst += tokenCounts(outputs).output ?? 0;
  };
  const ends = [
    onDiagnostics("tritonjs:request:start", ({ request }) => {
      counted.add(request);
      active.add(1, modelAttributes(request));
    }),
    ...(Object.keys(generators).length === 0 ? [] : [onDiagnostics("tritonjs:request:response", responded)]),
    onDiagnostics("tritonjs:request:settled", ({ request, error, durationMs }) => {
      const about = modelAttributes(request);
      if (counted.delete(request)) active.add(-1, about);
      const outcome = error === undefined ? {} : { "error.type": error.reason ?? error.code };
      duration.record(durationMs / 1000, { ...about, ...outcome });
      const { model } = request;
      if (!Object.hasOwn(generators, model)) return;
      const attributes = generatorAttributes(model, generators[model]!);
      generation.record(durationMs / 1000, { ...attributes, ...outcome });
      const { firstMs, lastMs, tokensAfterFirst } = generated.get(request) ?? NOT_GENERATED;
      if (tokensAfterFirst > 0) perToken.record((lastMs - firstMs) / 1000 / tokensAfterFirst, attributes);
    }),
    onExecution({
      start: (batch) => {
        startedAt.set(batch, performance.now());
        const cut = batch.cut === undefined ? {} : { "tritonjs.batch.cut": batch.cut };
        batchSize.record(batch.batchSize, { ...modelAttributes(batch), ...cut });
      },
      end: (batch) => {
        const start = startedAt.get(batch);
        if (start !== undefined)
          batchDuration.record((performance.now() - start) / 1000, modelAttributes(batch));
      },
    }),
  ];
  return () => {
    for (const end of ends) end();
  };
}

function modelAttributes({
  model,
  version,
}: {
  readonly model: string;
  readonly version: string;
}): Attributes {
  return { "triton.model_name": model, "triton.model_version": version };
}
