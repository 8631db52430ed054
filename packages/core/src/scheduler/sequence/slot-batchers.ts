import {
  type DataType,
  fromConfigDataType,
  type ModelConfig,
  type SequenceControl,
  Tensor,
  TritonError,
} from "@tritonjs/protocol";
import { defaultDynamicBatching } from "@tritonjs/protocol/config";
import type { Tensors } from "../../batch/batch-tensors.js";
import type { Payload } from "../../batch/payload.js";
import type { ModelInstance } from "../../instance/model-instance.js";
import type { LateCause } from "../../observe/statistics.js";
import type { InferenceRequest } from "../../request/inference-request.js";
import type { SequenceInfo, SequencePosition } from "../../request-info.js";
import { copyTensor } from "../../tensor-rows.js";
import type { BatchedModel, Batcher } from "../batcher.js";
import { DynamicBatchScheduler } from "../dynamic/dynamic-batch-scheduler.js";
import type { Scheduler } from "../scheduler.js";
import {
  endedEarlyError,
  type SequenceHost,
  type Slot,
  SlotBatcher,
  type WaitingRequest,
} from "./sequence.js";

/**
 * The oldest strategy at one instance. Each sequence in a slot hands one request at a time to a dynamic batcher, which
 * joins them in order of arrival.
 */
export class OldestBatcher extends SlotBatcher {
  readonly mergeAfterMs: number;
  readonly maxBatchSize: number;
  readonly #inner: Scheduler;
  /** Slots with a request at the dynamic batcher or the instance. */
  readonly #inFlight = new Set<Slot>();
  #losing = false;

  /**
   * @param model its group of instances has this one instance
   * @param batcher makes the batcher that joins the requests. @default Triton's
   */
  constructor(model: BatchedModel, host: SequenceHost, batcher: Batcher | undefined) {
    super(model.instances, host, model.clock);
    const { config } = model;
    const { preferredBatchSize, maxQueueDelayMicroseconds, preserveOrdering } =
      config.sequenceBatching!.oldest!;
    const dynamicBatching = {
      ...defaultDynamicBatching(),
      preferredBatchSize,
      maxQueueDelayMicroseconds,
      preserveOrdering,
    };
    const batched = { ...model, config: { ...config, dynamicBatching } };
    this.#inner = batcher?.open(batched) ?? new DynamicBatchScheduler(batched);
    this.mergeAfterMs = this.#inner.mergeAfterMs ?? 0;
    this.maxBatchSize = this.#inner.maxBatchSize ?? config.maxBatchSize;
  }

  slotFreed(): void {
    this.#inner.slotFreed?.();
  }

  started(instance: ModelInstance, payload: Payload): void {
    this.#inner.started?.(instance, payload);
  }

  ended(instance: ModelInstance, payload: Payload): void {
    this.#inner.ended?.(instance, payload);
  }

  override lateCause(request: InferenceRequest): LateCause | undefined {
    return this.#inner.limits?.lateCause(request);
  }

  healthChanged(healthy: boolean): void {
    if (!healthy) this.#lose();
  }

  get queuedCount(): number {
    return this.#inner.queuedCount;
  }

  /**
   * Handles the failure of the instance. Requests at the dynamic batcher are lost too, and no others are handed over
   * meanwhile.
   */
  #lose(): void {
    this.#losing = true;
    this.host.lost(this);
    this.#losing = false;
    for (const slot of this.slots) this.changed(slot);
  }

  /**
   * Hands over the next request. If the slot still has a request of the previous sequence in flight, the new sequence
   * waits for it.
   */
  changed(slot: Slot): void {
    while (!this.#losing && slot.sequence?.head !== undefined && !this.#inFlight.has(slot)) {
      const { sequence } = slot;
      const request = this.host.take(slot);
      request.extra = { start: this.clock.now() };
      try {
        this.#inner.enqueue(request);
      } catch (refusal) {
        // With deadlines, a request without hope is refused. Its sequence goes on, unless the model misses its bounds.
        const { sequenceStart, sequenceEnd } = request;
        request.cancel(TritonError.from(refusal));
        if (sequenceStart) sequence.failAll(endedEarlyError());
        if (sequenceStart || sequenceEnd) this.host.gaveUp(sequence);
      }
    }
  }

  override left(slot: Slot): void {
    super.left(slot);
    this.#inFlight.add(slot);
  }

  override released(slot: Slot): void {
    super.released(slot);
    this.#inFlight.delete(slot);
  }

  override goOn(slot: Slot): void {
    this.changed(slot);
  }

  hurry(): void {
    this.#inner.hurry?.();
  }

  failQueued(error: TritonError): void {
    this.#inner.failQueued(error);
  }
}

export interface ControlValues extends SequencePosition {
  /** False for a null request; all others are then false, zero or empty too. */
  readonly ready: boolean;
}

/**
 * Makes the tensors that tell a model the position of a request in its sequence. Each has one element, and the shape
 * `[1]`, or `[1, 1]` for a model with a batch axis.
 */
export class ControlInputs {
  readonly #controls: readonly { readonly name: string; readonly control: SequenceControl }[];
  readonly #shape: readonly number[];

  constructor(config: ModelConfig) {
    const inputs = config.sequenceBatching?.controlInput ?? [];
    this.#controls = inputs.flatMap(({ name, control }) => control.map((one) => ({ name, control: one })));
    this.#shape = config.maxBatchSize > 0 ? [1, 1] : [1];
  }

  addTo(inputs: Tensors, values: ControlValues): Tensors {
    if (this.#controls.length === 0) return inputs;
    const all = new Map(inputs);
    for (const { name, control } of this.#controls) all.set(name, this.#tensor(control, values));
    return all;
  }

  #tensor(control: SequenceControl, values: ControlValues): Tensor {
    switch (control.kind) {
      case "CONTROL_SEQUENCE_START":
        return this.#flag(control, values.ready && values.sequenceStart);
      case "CONTROL_SEQUENCE_END":
        return this.#flag(control, values.ready && values.sequenceEnd);
      case "CONTROL_SEQUENCE_READY":
        return this.#flag(control, values.ready);
      case "CONTROL_SEQUENCE_CORRID":
        return this.#id(
          fromConfigDataType(control.dataType)!,
          values.ready ? values.correlationId : undefined,
        );
    }
  }

  #flag({ int32FalseTrue, fp32FalseTrue, boolFalseTrue }: SequenceControl, value: boolean): Tensor {
    const index = value ? 1 : 0;
    if (int32FalseTrue.length > 0) {
      return Tensor.fromElements("INT32", this.#shape, Int32Array.of(int32FalseTrue[index]!));
    }
    if (fp32FalseTrue.length > 0) {
      return Tensor.fromElements("FP32", this.#shape, Float32Array.of(fp32FalseTrue[index]!));
    }
    return Tensor.fromElements("BOOL", this.#shape, Uint8Array.of(boolFalseTrue[index] ? 1 : 0));
  }

  /** An id that is too large for its data type loses its upper bits, as in Triton. */
  #id(datatype: DataType, id: bigint | string | undefined): Tensor {
    if (datatype === "BYTES") {
      return Tensor.fromElements("BYTES", this.#shape, [
        new TextEncoder().encode(typeof id === "string" ? id : ""),
      ]);
    }
    const number = typeof id === "bigint" ? id : 0n;
    if (datatype === "UINT64") {
      return Tensor.fromElements(datatype, this.#shape, BigUint64Array.of(BigInt.asUintN(64, number)));
    }
    if (datatype === "INT64") {
      return Tensor.fromElements(datatype, this.#shape, BigInt64Array.of(BigInt.asIntN(64, number)));
    }
    const low = Number(BigInt.asUintN(32, number));
    const elements = datatype === "UINT32" ? Uint32Array.of(low) : Int32Array.of(low);
    return Tensor.fromElements(datatype, this.#shape, elements);
  }
}

/**
 * Triton's implicit state: a state output of one request of a sequence becomes the state input of the next request.
 *
 * ```
 * START --> initial state --> request 1 --> S_NEW --copy--> S of request 2 --> S_NEW --> ... END: gone
 * ```
 *
 * States belong to the sequence's `SequenceInfo`. A START makes a new one, and nothing holds it once the sequence is
 * over.
 */
export class ImplicitStates {
  readonly #states: readonly { readonly input: string; readonly output: string }[];
  readonly #initial: ReadonlyMap<string, Tensor>;
  readonly #kept = new WeakMap<SequenceInfo, Map<string, Tensor>>();

  constructor(config: ModelConfig, initial: ReadonlyMap<string, Tensor>) {
    this.#states = (config.sequenceBatching?.state ?? []).map(({ inputName, outputName }) => ({
      input: inputName,
      output: outputName,
    }));
    this.#initial = initial;
  }

  withStates(request: InferenceRequest, info: SequenceInfo | undefined): WaitingRequest {
    const kept = info === undefined || request.sequenceStart ? undefined : this.#kept.get(info);
    return {
      queueStart: request.queueStart,
      inputs: new Map([...request.inputs, ...(kept ?? this.#initial)]),
    };
  }

  attach(request: InferenceRequest, info: SequenceInfo): void {
    let states = this.#kept.get(info);
    if (states === undefined) {
      // Copies, because a callback may write to its inputs.
      states = new Map([...this.#initial].map(([name, tensor]) => [name, copyTensor(tensor)]));
      this.#kept.set(info, states);
    }
    request.inputs = new Map([...request.inputs, ...states]);
  }

  keep(info: SequenceInfo, outputs: Tensors): void {
    const states = this.#kept.get(info);
    for (const { input, output } of this.#states) {
      const tensor = outputs.get(output);
      // A copy, because the output may be part of a large batch, and may go to the client too.
      if (tensor !== undefined) states?.set(input, copyTensor(tensor));
    }
  }
}
