import { randomUUID } from "node:crypto";
import { onTestFinished } from "vitest";
import { SharedMemory } from "../../src/shared-memory/shared-memory.js";
import { SharedMemoryRegion } from "../../src/shared-memory/shared-memory-region.js";

/** macOS lets an object have its size once. */
export const cannotShrink = process.platform === "darwin";

/** A key that no other object has, short enough for macOS. */
export function uniqueKey(): string {
  return `/tritonjs-${randomUUID().slice(0, 13)}`;
}

/** A shared memory object for the length of a test. */
export async function openRegion(byteSize: number): Promise<SharedMemoryRegion> {
  const region = await SharedMemoryRegion.create(uniqueKey(), byteSize);
  onTestFinished(() => region.destroy());
  return region;
}

/** Shared memory of clients, allowed, for the length of a test. */
export function openMemory(): SharedMemory {
  const memory = new SharedMemory(true);
  onTestFinished(() => memory.close());
  return memory;
}
