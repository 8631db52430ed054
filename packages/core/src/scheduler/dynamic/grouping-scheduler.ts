import {
  errorFor,
  fromConfigDataType,
  type ModelConfig,
  type TensorSpec,
  TritonError,
  toNdArray,
} from "@tritonjs/protocol";
import type { CutOutput, MaskInput, PaddingRules } from "../../batch/batch-layout.js";
import {
  type BatchingRequest,
  type BatchKey,
  PAD_INPUTS,
  padSetting,
  type VariableLengthOptions,
} from "../../config/model-options.js";
import type { InferenceRequest } from "../../request/inference-request.js";
import { requestInfo } from "../../request-info.js";
import { elementOf } from "../../tensor-rows.js";
import type { BatchedModel } from "../batcher.js";
import { ArrivalHold, type LevelStatus, type Scheduler } from "../scheduler.js";
import { DynamicBatchScheduler } from "./dynamic-batch-scheduler.js";
import { OrderedResponses } from "./ordered-responses.js";
import { freePlacesOf, Heap, type QueueTotals } from "./priority-queue.js";

/** Number of idle groups that may be kept before a sweep. */
const IDLE_GROUPS = 64;

/**
 * Batches requests in groups (`batchBy`), and bounds batches by cost. Each group has a batcher with its own queue,
 * delay and payload. So a request of one group never ends or delays a batch of another. All batchers feed the same
 * instances. Their turn follows the order that their next requests would have in one queue. A group exists while it has
 * requests.
 *
 * ```
 * request --batchBy, cost--> group "128": dynamic batcher --+
 *                            group "512": dynamic batcher --+--> payloads --> instances
 * ```
 */
export class GroupingScheduler implements Scheduler {
  readonly mergeAfterMs: number;
  readonly maxBatchSize: number;
  readonly #groups = new Map<BatchKey | undefined, DynamicBatchScheduler>();
  readonly #levels = new Map<number, QueueTotals>();
  readonly #ordered = new OrderedResponses();
  readonly #inTurn = new BatchersInTurn();
  /** Groups that have to look at their queues again when an instance takes their payload. */
  readonly #behindPayload = new Set<DynamicBatchScheduler>();
  #looking = false;
  #lookAgain = false;
  #stopped = false;
  #sweepAt = IDLE_GROUPS;
  readonly #hold: ArrivalHold;
  readonly #model: BatchedModel;

  /** @param model its requests are classified by a key */
  constructor(model: BatchedModel) {
    const { config, holdUntil = 0 } = model;
    this.mergeAfterMs = config.dynamicBatching!.maxQueueDelayMicroseconds / 1000;
    this.maxBatchSize = config.maxBatchSize;
    this.#hold = new ArrivalHold(holdUntil);
    this.#model = model;
  }

  get queuedCount(): number {
    let count = 0;
    for (const { size } of this.#levels.values()) count += size;
    return count;
  }

  /** The levels over all groups, highest first. */
  get levels(): readonly LevelStatus[] {
    const merged = new Map<number, LevelStatus>();
    for (const group of this.#groups.values()) {
      for (const level of group.levels) {
        const known = merged.get(level.priorityLevel);
        merged.set(level.priorityLevel, known === undefined ? level : mergeLevels(known, level));
      }
    }
    return [...merged.values()].sort((a, b) => a.priorityLevel - b.priorityLevel);
  }

  /** Size limits apply to all groups together. */
  freePlaces(priority?: number): number {
    const batching = this.#model.config.dynamicBatching!;
    return freePlacesOf(batching, (level) => this.#levels.get(level)?.size ?? 0, priority);
  }

  enqueue(request: InferenceRequest, isMoved = false): void {
    this.#model.classify!(request);
    this.#groupOf(request.extra?.key).enqueue(request, isMoved);
    if (this.#hold.isOver) return;
    this.#hold.arrived();
    if (!this.#hold.isOver) return;
    const held = [...this.#groups.values()].filter(({ head }) => head !== undefined);
    held.sort((a, b) => a.headPriority - b.headPriority || a.head!.queueStart - b.head!.queueStart);
    for (const group of held) group.release();
  }

  /** Lets the batchers of all groups look for work, in the order that their next requests would have in one queue. */
  slotFreed(): void {
    this.#lookAgain = true;
    if (this.#looking) return;
    this.#looking = true;
    try {
      while (this.#lookAgain) {
        this.#lookAgain = false;
        for (const group of [...this.#behindPayload]) if (group.hasSlot) group.slotFreed();
        this.#giveSlots();
      }
    } finally {
      this.#looking = false;
    }
  }

  stop(): void {
    this.#stopped = true;
    this.#hold.end();
    for (const group of this.#groups.values()) group.stop();
  }

  failQueued(error: TritonError): void {
    for (const group of this.#groups.values()) group.failQueued(error);
    this.#model.instances.failQueued(error);
  }

  #giveSlots(): void {
    for (let group = this.#inTurn.take(); group !== undefined; group = this.#inTurn.take()) {
      if (!group.hasSlot) {
        this.#inTurn.add(group);
        return;
      }
      group.slotFreed();
    }
  }

  #changed(group: DynamicBatchScheduler): void {
    if (group.needsSlot) this.#inTurn.add(group);
    if (group.waitsBehindPayload) this.#behindPayload.add(group);
    else this.#behindPayload.delete(group);
  }

  #groupOf(key: BatchKey | undefined): DynamicBatchScheduler {
    const known = this.#groups.get(key);
    if (known !== undefined) return known;
    this.#sweep();
    const holdUntil = this.#hold.isOver ? 0 : Number.POSITIVE_INFINITY;
    const model: BatchedModel = { ...this.#model, holdUntil, classify: undefined };
    const group: DynamicBatchScheduler = new DynamicBatchScheduler(model, undefined, {
      levels: this.#levels,
      ordered: this.#ordered,
      onChange: () => this.#changed(group),
    });
    if (this.#stopped) group.stop();
    this.#groups.set(key, group);
    return group;
  }

  /** Removes idle groups, once there are twice as many groups as were busy at the last sweep. */
  #sweep(): void {
    if (this.#groups.size < this.#sweepAt) return;
    for (const [key, group] of this.#groups) {
      if (group.queuedCount > 0) continue;
      group.hurry();
      this.#groups.delete(key);
    }
    this.#sweepAt = 2 * this.#groups.size + IDLE_GROUPS;
  }
}

function mergeLevels(a: LevelStatus, b: LevelStatus): LevelStatus {
  return {
    priorityLevel: a.priorityLevel,
    queued: a.queued + b.queued,
    delayed: a.delayed + b.delayed,
    rows: a.rows + b.rows,
    oldestQueueStart: Math.min(a.oldestQueueStart, b.oldestQueueStart),
  };
}

/**
 * Calls the model's own functions for the group and the cost of a request, and records the results in the request.
 *
 * @throws TritonError INVALID_ARG for this request alone: if a function throws or returns an invalid value, or the cost
 * exceeds the limit of a batch.
 */
export function classifyRequest(request: InferenceRequest, grouping: BatchGrouping): void {
  const { batchBy, cost: costOf, maxBatchCost } = grouping;
  const view = batchingRequest(request);
  const key = batchBy && checkedKey(request, ask(request, "batchBy", batchBy, view));
  const cost = costOf === undefined ? 0 : checkedCost(request, ask(request, "cost", costOf, view));
  request.extra = { key, cost };
  if (costOf === undefined || maxBatchCost === undefined || cost <= maxBatchCost) return;
  throw refusal(request, "cost", `: expected at most ${maxBatchCost}, got ${cost}`);
}

function ask<T>(
  request: InferenceRequest,
  name: string,
  fn: (view: BatchingRequest) => T,
  view: BatchingRequest,
): unknown {
  try {
    return fn(view);
  } catch (thrown) {
    const why = TritonError.from(thrown).message;
    throw refusal(request, name, ` threw an error: ${why}`, thrown);
  }
}

function checkedKey(request: InferenceRequest, key: unknown): BatchKey {
  const known = typeof key === "string" || typeof key === "bigint" || typeof key === "boolean";
  if (known || (typeof key === "number" && !Number.isNaN(key))) return key as BatchKey;
  const got = typeof key === "number" ? "NaN" : typeof key;
  throw refusal(request, "batchBy", `: expected a string, number, bigint or boolean, got ${got}`);
}

function checkedCost(request: InferenceRequest, cost: unknown): number {
  if (typeof cost === "number" && Number.isFinite(cost) && cost >= 0) return cost;
  const got = typeof cost === "number" ? cost : typeof cost;
  throw refusal(request, "cost", `: expected a finite number of at least 0, got ${got}`);
}

/** A read-only view of the request; tensors become arrays on first access. */
function batchingRequest(request: InferenceRequest): BatchingRequest {
  const inputs: Record<string, never> = {};
  for (const [name, tensor] of request.inputs) {
    Object.defineProperty(inputs, name, {
      enumerable: true,
      get: () => toNdArray(tensor, "input", name, request.modelName),
    });
  }
  return { ...requestInfo(request), inputs };
}

function refusal(request: InferenceRequest, what: string, why: string, cause?: unknown): TritonError {
  return errorFor("INVALID_INPUT", `${request.logPrefix}${what} of model '${request.modelName}'${why}`, {
    cause,
  });
}

interface Place {
  readonly batcher: DynamicBatchScheduler;
  readonly priority: number;
  readonly start: number;
  /** Sequence number: of equal places, the earlier one goes first. */
  readonly number: number;
}

/**
 * Line of batchers that have requests and no slot for them, in the order that their next requests would have in one
 * queue. A next request may change while it waits, so places are checked when their turn comes.
 */
class BatchersInTurn {
  readonly #line = new Heap<Place>(compare);
  /** The valid place of each batcher in the line. */
  readonly #places = new Map<DynamicBatchScheduler, Place>();
  #added = 0;

  /** Gives a batcher a place in the line, or a better one if its next request now comes earlier. */
  add(batcher: DynamicBatchScheduler): void {
    const { head, headPriority: priority } = batcher;
    if (head === undefined) return;
    const place = { batcher, priority, start: head.queueStart, number: this.#added };
    const known = this.#places.get(batcher);
    if (known !== undefined && compare(known, place) <= 0) return;
    this.#added++;
    this.#places.set(batcher, place);
    this.#line.add(place);
  }

  /** Takes the batcher whose turn it is; undefined when none waits for a slot. */
  take(): DynamicBatchScheduler | undefined {
    for (let place = this.#line.take(); place !== undefined; place = this.#line.take()) {
      const { batcher, priority, start } = place;
      if (this.#places.get(batcher) !== place) continue;
      this.#places.delete(batcher);
      if (!batcher.needsSlot) continue;
      if (batcher.headPriority === priority && batcher.head?.queueStart === start) return batcher;
      this.add(batcher);
    }
    return undefined;
  }
}

function compare(a: Place, b: Place): number {
  return a.priority - b.priority || a.start - b.start || a.number - b.number;
}

/** The model's own functions that decide which requests share a batch, and how many. */
type BatchGrouping = Pick<VariableLengthOptions, "batchBy" | "cost" | "maxBatchCost">;

export interface VariableLength {
  readonly grouping: BatchGrouping;
  /** Inputs whose shapes may differ within a batch. */
  readonly padded: ReadonlySet<string>;
  readonly padding: PaddingRules | undefined;
}

/** Reads the options and checks them. Undefined if none of them is given. */
export function planVariableLength(
  options: VariableLengthOptions,
  inputs: readonly TensorSpec[],
  outputs: readonly TensorSpec[],
  config: ModelConfig,
): { readonly variableLength: VariableLength | undefined; readonly problems: readonly string[] } {
  const { batchBy, cost, maxBatchCost, pad } = options;
  const padded = paddedInputs(pad, config);
  const masks = inputs.flatMap(({ name, dtype, batchInput }): MaskInput[] =>
    batchInput?.kind === "PADDING_MASK"
      ? [{ name, datatype: dtype, sourceInput: batchInput.sourceInput }]
      : [],
  );
  const cuts = outputs.flatMap(({ name, batchOutput }): CutOutput[] =>
    batchOutput?.kind === "CUT_TO_INPUT_SHAPE" ? [{ name, sourceInput: batchOutput.sourceInput }] : [],
  );
  const problems = [
    ...groupingProblems(options),
    ...padProblems(pad, config),
    ...[...masks, ...cuts]
      .filter(({ sourceInput }) => !padded.has(sourceInput))
      .map(
        ({ name, sourceInput }) =>
          `'${name}' follows the padding of input '${sourceInput}', which is not padded`,
      ),
  ];
  if (batchBy === undefined && cost === undefined && maxBatchCost === undefined && pad === undefined) {
    return { variableLength: undefined, problems };
  }
  const byFunction = typeof pad === "function" ? pad : undefined;
  const values = typeof pad === "function" ? {} : pad;
  const padding = values && { values, pad: byFunction, masks, cuts };
  return { variableLength: { grouping: { batchBy, cost, maxBatchCost }, padded, padding }, problems };
}

/**
 * Reads which inputs the configuration of a model in a repository fills up.
 *
 * @throws TritonError INVALID_ARG for inputs that cannot be filled up, and without a dynamic batcher
 */
export function padsOfConfig(config: ModelConfig): VariableLength | undefined {
  const pad = padSetting(config);
  if (pad === undefined) return undefined;
  const option = `parameter '${PAD_INPUTS}' of model '${config.name}'`;
  const problems = padProblems(pad, config, option);
  if (config.dynamicBatching === undefined) problems.push(`${option} has no effect without dynamic_batching`);
  if (problems.length > 0) throw errorFor("INVALID_CONFIG", problems.join("; "));
  return planVariableLength({ pad }, [], [], config).variableLength;
}

function paddedInputs(pad: VariableLengthOptions["pad"], config: ModelConfig): ReadonlySet<string> {
  if (typeof pad !== "function") return new Set(Object.keys(pad ?? {}));
  return new Set(config.input.filter(isVariable).map(({ name }) => name));
}

function isVariable({ dims }: { readonly dims: readonly number[] }): boolean {
  return dims.includes(-1);
}

function groupingProblems({ batchBy, cost, maxBatchCost }: VariableLengthOptions): string[] {
  const problems: string[] = [];
  for (const [name, value] of Object.entries({ batchBy, cost })) {
    if (value !== undefined && typeof value !== "function") {
      problems.push(`config.batcher.${name}: expected a function, got ${typeof value}`);
    }
  }
  if (cost !== undefined && maxBatchCost === undefined) {
    problems.push("config.batcher.cost has no effect without config.batcher.maxBatchCost: give both");
  }
  if (maxBatchCost === undefined) return problems;
  if (cost === undefined)
    problems.push("config.batcher.maxBatchCost has no effect without config.batcher.cost: give both");
  if (!Number.isFinite(maxBatchCost) || maxBatchCost <= 0) {
    problems.push(`config.batcher.maxBatchCost: expected a number above 0, got ${maxBatchCost}`);
  }
  return problems;
}

function padProblems(
  pad: VariableLengthOptions["pad"],
  config: ModelConfig,
  option = "config.batcher.pad",
): string[] {
  if (pad === undefined || typeof pad === "function") return [];
  if (typeof pad !== "object" || pad === null) {
    return [`${option}: expected values by input name, or a function, got ${typeof pad}`];
  }
  return Object.entries(pad).flatMap(([name, value]) => {
    const input = config.input.find((one) => one.name === name);
    const where = `${option} names input '${name}', which`;
    if (input === undefined) return [`${where} the model does not have`];
    if (!isVariable(input)) return [`${where} has no variable dimension`];
    if (input.allowRaggedBatch || input.isShapeTensor) return [`${where} is ragged or a shape tensor`];
    const datatype = fromConfigDataType(input.dataType);
    if (datatype === undefined) return [];
    try {
      elementOf(value, datatype, `${option} of input '${name}'`);
      return [];
    } catch (error) {
      return [TritonError.from(error).message];
    }
  });
}
