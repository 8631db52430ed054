import { TritonError } from "@tritonjs/protocol";
import type { InstanceDevice, InstanceInfo } from "../callable/infer-context.js";

/** Something that is open, and what closes it. */
interface Held {
  readonly opened: Promise<unknown>;
  readonly close: () => Promise<void>;
}

/** By the device of the instance, of which there is one object for each instance. */
const heldThings = new WeakMap<InstanceDevice, Map<string, Held>>();

/**
 * Opens something for an instance when it is first asked for, and gives the same thing from then on. It is closed when
 * the instance ends; in a worker it ends with the worker.
 *
 * @param key tells apart what one instance holds; what could not be opened is tried again
 */
export function heldByInstance<T>(
  { device }: Pick<InstanceInfo, "device">,
  key: string,
  open: () => Promise<T>,
  close: (thing: T) => Promise<void>,
): Promise<T> {
  const things = heldThings.get(device) ?? new Map<string, Held>();
  heldThings.set(device, things);
  const known = things.get(key);
  if (known !== undefined) return known.opened as Promise<T>;
  const opened = open();
  things.set(key, { opened, close: async () => close(await opened) });
  opened.catch(() => things.delete(key));
  return opened;
}

/** Closes what an instance holds. What fails is told as a warning, and keeps nothing else open. */
export async function releaseHeld({ device }: Pick<InstanceInfo, "device">): Promise<void> {
  const things = heldThings.get(device);
  if (things === undefined) return;
  heldThings.delete(device);
  for (const { close } of things.values()) {
    await close().catch((error) => process.emitWarning(TritonError.from(error).message, "TritonWarning"));
  }
}
