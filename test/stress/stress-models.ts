import {
  done,
  type ModelHandle,
  type ModelOptions,
  RESCHEDULE,
  sequenceState,
  stepwise,
  type Triton,
  TritonError,
} from "@tritonjs/core";
import type { Clock } from "@tritonjs/testing";
import { echoInputs, echoOutputs } from "../support/echo-model.js";
import type { SeededRandom } from "../support/seeded-random.js";

type Handle = ModelHandle<typeof echoInputs, typeof echoOutputs>;

/** A model of the stress test. Its behaviour for each value is known beforehand. */
export interface StressModel {
  readonly name: string;
  readonly kind: "batch" | "sequence" | "iterative" | "stream" | "ensemble";
  /** The members of an ensemble, in order: each adds 1 to the value. */
  readonly members: readonly string[];
  readonly levels: number;
  /** True when its queue may reject requests. */
  readonly rejects: boolean;
  /** Values of the batches that broke. */
  readonly broken: Set<number>;
  readonly bind: () => Handle;
}

/** True for the values that a model answers with an error of their own. */
export const failsAlone = (value: number) => value % 13 === 7;

/** Error text of the model for such a value. */
export const FAILURE = "UNSUPPORTED not this one";

/** Responses of a stream for a value. */
export const streamLength = (value: number) => 1 + (value % 4);

const queue = { timeoutAction: "REJECT", defaultTimeoutMicroseconds: 8000, maxQueueSize: 12 } as const;

const configurations: Readonly<Record<string, ModelOptions>> = {
  plain: { maxBatchSize: 8, instanceGroup: { count: 3 } },
  delayed: { maxBatchSize: 8, batcher: { maxQueueDelayMicroseconds: 2000, preferredBatchSize: [4] } },
  ordered: { maxBatchSize: 4, instanceGroup: { count: 3 }, batcher: { preserveOrdering: true } },
  unbatched: { maxBatchSize: 8, batcher: false },
  priorities: {
    maxBatchSize: 4,
    batcher: {
      priorityLevels: 3,
      defaultPriorityLevel: 2,
      defaultQueuePolicy: queue,
      priorityQueuePolicy: { 3: { ...queue, timeoutAction: "DELAY" } },
    },
  },
  cached: { maxBatchSize: 4, responseCache: true },
  first: { maxBatchSize: 8 },
  second: { maxBatchSize: 8, instanceGroup: { count: 2 }, batcher: { maxQueueDelayMicroseconds: 1000 } },
  oldest: { maxBatchSize: 4, sequence: { maxSequenceIdleMicroseconds: 50_000 } },
  direct: {
    maxBatchSize: 4,
    instanceGroup: { count: 2 },
    sequence: { strategy: "direct", maxSequenceIdleMicroseconds: 50_000 },
  },
  stateful: {
    maxBatchSize: 3,
    sequence: {
      strategy: "direct",
      maxSequenceIdleMicroseconds: 50_000,
      states: [{ input: "seen", output: "seen_next", dtype: "INT32", shape: [1] }],
    },
  },
};

const notThisOne = () => new TritonError("UNSUPPORTED", "not this one");

/** All bindings, the members of the ensembles before them. */
export function stressModels(triton: Triton, clock: Clock, random: SeededRandom): readonly StressModel[] {
  const pause = () => new Promise<void>((resolve) => clock.setTimer(random.below(5), resolve));
  const specs = { inputs: echoInputs, outputs: echoOutputs } as const;
  const model = (
    name: string,
    kind: StressModel["kind"],
    bind: (broken: Set<number>) => Handle,
    more: Partial<StressModel> = {},
  ): StressModel => {
    const broken = new Set<number>();
    return { name, kind, members: [], levels: 0, rejects: false, broken, bind: () => bind(broken), ...more };
  };
  const kept = sequenceState(() => ({ count: 0 }));
  const batchModels = Object.entries(configurations).map(([name, config]) =>
    model(
      name,
      config.sequence === undefined ? "batch" : "sequence",
      (broken) =>
        triton.bind({
          ...specs,
          modelName: name,
          config,
          // Reading the signal makes it listen to the signals of all requests.
          inferFunc: async (requests, { signal: _signal }) => {
            if (name === "plain" && random.chance(0.01)) await new Promise<never>(() => {});
            await pause();
            if (random.chance(0.05)) {
              for (const { inputs } of requests) broken.add(inputs.x.data[0]!);
              throw new Error("the batch broke");
            }
            return requests.map(({ inputs, sequence }) => {
              if (failsAlone(inputs.x.data[0]!)) return notThisOne();
              const y = inputs.x.data.map((value) => value + 1);
              const { seen } = inputs as { seen?: { get(...at: number[]): number } };
              if (seen === undefined) return { y };
              const count = sequence === undefined ? seen.get(0, 0) : kept(sequence).count++;
              if (count !== seen.get(0, 0)) return new Error(`the state is ${seen.get(0, 0)}, not ${count}`);
              return { y, seen_next: [[count + 1]] };
            });
          },
        }),
      name === "priorities" ? { levels: 3, rejects: true } : {},
    ),
  );
  const iterative = model("iterative", "iterative", (broken) =>
    triton.bind({
      ...specs,
      modelName: "iterative",
      config: { maxBatchSize: 4, sequence: { iterative: true } },
      inferFunc: async (requests, { signal: _signal }) => {
        await pause();
        if (random.chance(0.02)) {
          for (const { inputs } of requests) broken.add(inputs.x.data[0]!);
          throw new Error("the batch broke");
        }
        return requests.map(({ inputs }) => {
          if (random.chance(0.5)) return RESCHEDULE;
          const value = inputs.x.data[0]!;
          return failsAlone(value) ? notThisOne() : { y: [[value + 1]] };
        });
      },
    }),
  );
  const stream = model("stream", "stream", () =>
    triton.bind({
      ...specs,
      modelName: "stream",
      config: { maxBatchSize: 1, instanceGroup: { count: 2 } },
      async *inferFunc([request]) {
        const value = request!.inputs.x.data[0]!;
        for (let i = 0; i < streamLength(value); i++) {
          await pause();
          yield [{ y: [[value + 1]] }];
        }
        if (failsAlone(value)) throw notThisOne();
      },
    }),
  );
  const steps = model("steps", "stream", (broken) =>
    triton.bind({
      ...specs,
      modelName: "steps",
      config: { maxBatchSize: 4, instanceGroup: { count: 2 } },
      inferFunc: stepwise<typeof echoInputs, typeof echoOutputs, { value: number; left: number }>({
        start: async ({ x }) => {
          if (random.chance(0.3)) await pause();
          const value = x.data[0]!;
          return { value, left: streamLength(value) };
        },
        step: async (active) => {
          await pause();
          if (random.chance(0.02)) {
            for (const { value } of active) broken.add(value);
            throw new Error("the batch broke");
          }
          return active.map((state) => {
            if (state.left === 0) return failsAlone(state.value) ? notThisOne() : done();
            if (random.chance(0.2)) return undefined;
            state.left--;
            return { y: [state.value + 1] };
          });
        },
      }),
    }),
  );
  const ensemble = (
    name: string,
    kind: StressModel["kind"],
    members: readonly [string, string],
    size: number,
  ) =>
    model(
      name,
      kind,
      () =>
        triton.bindEnsemble({
          ...specs,
          modelName: name,
          config: { maxBatchSize: size },
          steps: [
            { modelName: members[0], inputMap: { x: "x" }, outputMap: { y: "middle" } },
            { modelName: members[1], inputMap: { x: "middle" }, outputMap: { y: "y" } },
          ],
        }),
      { members },
    );
  return [
    ...batchModels,
    iterative,
    stream,
    steps,
    ensemble("ensemble", "ensemble", ["first", "second"], 8),
    ensemble("streams", "stream", ["stream", "second"], 1),
  ];
}
