import { deadlines } from "@tritonjs/scheduling";
import type { Scenario } from "./scenario.js";
import type { SimulatedModelOptions } from "./simulated-model.js";

/** How the model is bound. */
export interface Setting {
  readonly name: string;
  readonly maxBatchSize: number;
  readonly batcher: SimulatedModelOptions["batcher"];
}

/** Each request is a batch. */
export const ONE_BY_ONE: Setting = { name: "one by one", maxBatchSize: 1, batcher: {} };

/** A fixed delay and a largest batch; without a delay batching is eager. */
export function fixed(delayMs: number, maxBatchSize: number): Setting {
  const name = `${delayMs === 0 ? "eager" : `${delayMs} ms`}, up to ${maxBatchSize}`;
  return { name, maxBatchSize, batcher: { maxQueueDelayMicroseconds: delayMs * 1000 } };
}

/** Batching towards the target. */
export function adaptive({ maxBatchSize, targetMs }: Scenario): Setting {
  return { name: "adaptive", maxBatchSize, batcher: deadlines({ targetLatencyMs: targetMs }) };
}

/** Delays as shares of the target. */
const DELAYS = [0, 0.1, 0.2, 0.4];

/** All fixed settings of the search: each delay with each power of two as the largest (and preferred) batch. */
export function fixedSettings({ maxBatchSize, targetMs }: Scenario): Setting[] {
  const sizes: number[] = [];
  for (let size = maxBatchSize; size >= 1; size = Math.floor(size / 2)) sizes.push(size);
  return DELAYS.flatMap((share) => sizes.map((size) => fixed(share * targetMs, size)));
}
