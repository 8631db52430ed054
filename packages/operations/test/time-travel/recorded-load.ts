import { setImmediate, setTimeout } from "node:timers/promises";
import { type BindOptions, type ModelOptions, Triton, type TritonOptions } from "@tritonjs/core";
import { RESCHEDULE } from "@tritonjs/core/internal";
import { recordScheduling, type SchedulingRecording, Tape } from "@tritonjs/operations/time-travel";
import { deadlines as byDeadline, fairShares, type ShareOptions, scheduling } from "@tritonjs/scheduling";

/** A source of random numbers that a seed decides. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0 || 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    state >>>= 0;
    return state / 2 ** 32;
  };
}

export type LoadKind = keyof typeof CASES;

interface LoadCase {
  readonly server?: TritonOptions;
  /** How callers share all models. */
  readonly shares?: ShareOptions;
  readonly models: readonly (Partial<BindOptions<never, never, never>["config"]> & object)[];
  readonly shapes?: boolean;
  readonly sequences?: boolean;
  readonly decoupled?: boolean;
  /** True for requests of one row. */
  readonly single?: boolean;
}

const batcher = (options: NonNullable<ModelOptions["batcher"]>, maxBatchSize = 8, count = 1) => ({
  maxBatchSize,
  batcher: options,
  instanceGroup: [{ count }],
});

/** Each way of scheduling. */
export const CASES = {
  direct: { models: [{ batching: false }] },
  eager: { models: [batcher({})] },
  delay: { models: [batcher({ maxQueueDelayMicroseconds: 3000, preferredBatchSize: [3, 6] }, 8, 2)] },
  shapes: { models: [batcher({ maxQueueDelayMicroseconds: 2000 })], shapes: true },
  levels: {
    models: [
      batcher({
        priorityLevels: 3,
        defaultPriorityLevel: 2,
        defaultQueuePolicy: {
          defaultTimeoutMicroseconds: 8000,
          allowTimeoutOverride: true,
          maxQueueSize: 20,
        },
      }),
    ],
  },
  "answers in order": {
    models: [
      batcher(
        {
          preserveOrdering: true,
          defaultQueuePolicy: { defaultTimeoutMicroseconds: 9000 },
        },
        4,
        2,
      ),
    ],
  },
  "delayed ones last": {
    models: [
      batcher({ defaultQueuePolicy: { defaultTimeoutMicroseconds: 4000, timeoutAction: "DELAY" } }, 4),
    ],
  },
  "iterative sequences": {
    models: [{ maxBatchSize: 4, sequence: { iterative: true }, instanceGroup: [{ count: 2 }] }],
    single: true,
  },
  adaptive: { models: [batcher(byDeadline({ targetLatencyMs: 25 }), 8, 2)] },
  deadlines: { models: [batcher(byDeadline({ defaultMs: 30 }), 8, 2)] },
  shares: { models: [batcher(fairShares({ by: "caller", weights: { gold: 3 } }))] },
  "deadlines and shares": {
    models: [batcher(byDeadline({ shares: { by: ({ parameters }) => String(parameters.caller) } }))],
  },
  groups: {
    models: [
      batcher({
        batchBy: ({ parameters }) => String(parameters.caller),
        cost: ({ batchSize }) => batchSize,
        maxBatchCost: 5,
        maxQueueDelayMicroseconds: 1000,
      }),
    ],
  },
  "rate limiter": {
    server: { rateLimit: "execution_count", rateLimitResources: [{ name: "r", count: 2 }] },
    models: [1, 2, 3].map((priority) => ({
      ...batcher({}),
      instanceGroup: [{ count: 2, rateLimiter: { resources: [{ name: "r", count: 1 }], priority } }],
    })),
  },
  "shares over all models": {
    shares: { by: "caller", weights: { gold: 3 } },
    models: [1, 2].map(() => batcher({})),
  },
  "sequences, direct": {
    models: [
      {
        maxBatchSize: 4,
        sequence: { strategy: "direct", maxQueueDelayMicroseconds: 2000, minimumSlotUtilization: 0.5 },
        instanceGroup: [{ count: 2 }],
      },
    ],
    sequences: true,
  },
  "sequences, oldest": {
    models: [
      {
        maxBatchSize: 4,
        sequence: { strategy: "oldest", maxCandidateSequences: 4 },
        instanceGroup: [{ count: 2 }],
      },
    ],
    sequences: true,
  },
} as const satisfies Record<string, unknown>;

const WORKER = new URL("./fixtures/takes-its-time.mjs", import.meta.url);

/** Runs a batch on the main thread: its time, and whether it fails, are random. */
function inlineModel(random: () => number, iterative: boolean) {
  return async (requests: readonly { readonly inputs: { readonly x: never } }[]) => {
    if (random() < 0.1) holdUp(3 * random());
    if (random() < 0.1) await setImmediate();
    else await setTimeout(1 + Math.floor(random() * 4));
    if (random() < 0.02) throw new Error("planted");
    return requests.map(({ inputs }) => (iterative && random() < 0.5 ? RESCHEDULE : { y: inputs.x }));
  };
}

/** Answers a request in two parts. */
function decoupledModel(random: () => number) {
  return async function* (requests: readonly { readonly inputs: { readonly x: never } }[]) {
    yield [{ y: requests[0]!.inputs.x }];
    await setTimeout(1 + Math.floor(random() * 4));
    yield [{ y: requests[0]!.inputs.x }];
  };
}

export interface LoadOptions {
  readonly seed: number;
  readonly count: number;
  readonly tape?: SchedulingRecording;
  /** Whether instances are workers, one of which ends by itself. */
  readonly workers?: boolean;
  /** Whether all requests are awaited after each tenth one. */
  readonly resting?: boolean;
  /** Called before each request. */
  readonly before?: (index: number, triton: Triton) => void;
}

/** Runs a random load, with cancellations and failures, while its scheduling is recorded. */
export async function recordedLoad(kind: LoadKind, options: LoadOptions): Promise<Tape> {
  const { seed, count, tape = recordScheduling(), workers = false, resting = false, before } = options;
  const random = seeded(seed);
  const { models, server, shares, shapes, sequences, single, decoupled } = CASES[kind] as unknown as LoadCase;
  const isIterative = kind === "iterative sequences";
  const onThisThread = decoupled ? decoupledModel(random) : inlineModel(random, isIterative);
  const inferFunc = workers && !isIterative && !decoupled ? WORKER : onThisThread;
  await using triton = new Triton({
    ...server,
    logError: false,
    logWarning: false,
    extensions: [tape, scheduling({ ...(shares && { shares }) })],
  });
  const handles = models.map((config, i) =>
    triton.bind({
      modelName: `m${i}`,
      inputs: [{ name: "x", dtype: "FP32", shape: [-1] }],
      outputs: [{ name: "y", dtype: "FP32", shape: [-1] }],
      inferFunc: inferFunc as never,
      config: config as never,
    }),
  );
  await triton.ready();
  const sent: Promise<unknown>[] = [];
  for (let i = 0; i < count; i++) {
    before?.(i, triton);
    if (resting && i % 10 === 0) await Promise.all(sent);
    if (random() < 0.1) holdUp(6 * random());
    const pause = random();
    if (pause < 0.2) await setTimeout(1 + Math.floor(4 * random()));
    else if (pause < 0.5) await setImmediate();
    const handle = handles[Math.floor(random() * handles.length)]!;
    const rows = sequences || single || !("maxBatchSize" in models[0]!) ? 1 : 1 + Math.floor(random() * 3);
    const length = shapes ? 1 + Math.floor(random() * 2) : 2;
    const x = Array.from({ length: rows }, () =>
      Array.from({ length }, () => (workers && i === 60 ? -1 : i)),
    );
    const controller = new AbortController();
    const options = {
      id: `r${i}`,
      parameters: { caller: random() < 0.5 ? "gold" : "tin" },
      priority: Math.floor(random() * 4),
      signal: controller.signal,
      ...(random() < 0.3 && { timeoutMs: 5 + Math.floor(random() * 40) }),
      ...(sequences && sequenceOf(i, random)),
    };
    const inputs = ("maxBatchSize" in models[0]! ? { x } : { x: x[0] }) as never;
    sent.push(
      (decoupled
        ? readAll(handle.stream(inputs, options as never))
        : handle.infer(inputs, options as never)
      ).catch(() => {}),
    );
    if (random() < 0.05) controller.abort();
    else if (random() < 0.03) void setTimeout(3).then(() => controller.abort());
  }
  await Promise.all(sent);
  return Tape.from(tape.bytes());
}

/** Position in one of twelve sequences of random length. */
function sequenceOf(i: number, random: () => number): object {
  const id = 1 + Math.floor(random() * 12);
  const start = random() < 0.5 || i < 12;
  return { sequence: { id, start, end: random() < 0.3 } };
}

async function readAll(stream: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of stream);
}

/** Holds up the event loop, as garbage collection and other programs do. */
function holdUp(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}
