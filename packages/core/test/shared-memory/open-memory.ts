import { randomUUID } from "node:crypto";
import { onTestFinished } from "vitest";
import { Exchange } from "../../src/service/exchange.js";
import type { FoundModel } from "../../src/service/inference-service.js";
import { SharedMemoryRegion } from "../../src/shared-memory/index.js";
import { SharedMemory } from "../../src/shared-memory/shared-memory.js";

/** macOS allows the size of an object to be set only once. */
export const cannotShrink = process.platform === "darwin";

/** A unique key, short enough for macOS. */
export function uniqueKey(): string {
  return `/tritonjs-${randomUUID().slice(0, 13)}`;
}

/** A shared memory object that is destroyed at the end of the test. */
export async function openRegion(byteSize: number): Promise<SharedMemoryRegion> {
  const region = await SharedMemoryRegion.create(uniqueKey(), byteSize);
  onTestFinished(() => region.destroy());
  return region;
}

/** Enabled client shared memory, closed at the end of the test. */
export function openMemory(): SharedMemory {
  const memory = new SharedMemory(true);
  onTestFinished(() => memory.close());
  return memory;
}

/** The exchange of a request that may name regions. */
export function exchangeOver(sharedMemory: SharedMemory): Exchange {
  const service = { sharedMemory, assertOpen() {}, model: () => model };
  const model = { config: {} } as FoundModel;
  return new Exchange(service, undefined, model);
}
