import { type Clock, type ModelHandle, type ModelOptions, type Triton, TritonError } from "@tritonjs/core";
import { echoInputs, echoOutputs } from "../support/echo-model.js";
import type { SeededRandom } from "../support/seeded-random.js";

type Handle = ModelHandle<typeof echoInputs, typeof echoOutputs>;

/** A model of the stress test. What it does with a value is known beforehand. */
export interface StressModel {
  readonly name: string;
  readonly kind: "batch" | "sequence" | "stream" | "ensemble";
  readonly levels: number;
  /** True when its queue may turn requests away. */
  readonly rejects: boolean;
  /** Values of the batches that broke. */
  readonly broken: Set<number>;
  readonly bind: () => Handle;
}

/** True for the values that a model answers with an error of their own. */
export const failsAlone = (value: number) => value % 13 === 7;

/** What a model says to such a value. */
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
};

/** Everything that is bound, the members of the ensemble before it. */
export function stressModels(triton: Triton, clock: Clock, random: SeededRandom): readonly StressModel[] {
  const pause = () => new Promise<void>((resolve) => clock.setTimer(random.below(5), resolve));
  const specs = { inputs: echoInputs, outputs: echoOutputs } as const;
  const batchModels = Object.entries(configurations).map(([name, config]): StressModel => {
    const broken = new Set<number>();
    return {
      name,
      kind: config.sequence === undefined ? "batch" : "sequence",
      levels: name === "priorities" ? 3 : 0,
      rejects: name === "priorities",
      broken,
      bind: () =>
        triton.bind({
          ...specs,
          modelName: name,
          config,
          inferFunc: async (requests) => {
            if (name === "plain" && random.chance(0.01)) await new Promise<never>(() => {});
            await pause();
            if (random.chance(0.05)) {
              for (const { inputs } of requests) broken.add(inputs.x.data[0]!);
              throw new Error("the batch broke");
            }
            return requests.map(({ inputs }) =>
              failsAlone(inputs.x.data[0]!)
                ? new TritonError("UNSUPPORTED", "not this one")
                : { y: inputs.x.data.map((value) => value + 1) },
            );
          },
        }),
    };
  });
  const stream: StressModel = {
    name: "stream",
    kind: "stream",
    levels: 0,
    rejects: false,
    broken: new Set(),
    bind: () =>
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
          if (failsAlone(value)) throw new TritonError("UNSUPPORTED", "not this one");
        },
      }),
  };
  const ensemble: StressModel = {
    name: "ensemble",
    kind: "ensemble",
    levels: 0,
    rejects: false,
    broken: new Set(),
    bind: () =>
      triton.bindEnsemble({
        ...specs,
        modelName: "ensemble",
        config: { maxBatchSize: 8 },
        steps: [
          { modelName: "first", inputMap: { x: "x" }, outputMap: { y: "middle" } },
          { modelName: "second", inputMap: { x: "middle" }, outputMap: { y: "y" } },
        ],
      }),
  };
  return [...batchModels, stream, ensemble];
}
