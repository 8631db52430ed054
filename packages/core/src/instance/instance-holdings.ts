import { TritonError } from "@tritonjs/protocol";
import type { InstanceDevice, InstanceInfo } from "../callable/infer-context.js";

/** An open resource and the function that closes it. */
interface Held {
  readonly opened: Promise<unknown>;
  readonly close: () => Promise<void>;
}

/** Resources by the device of the instance; each instance has a device object of its own. */
const heldThings = new WeakMap<InstanceDevice, Map<string, Held>>();

/**
 * Opens a resource for an instance on first use, and returns the same one from then on. It is closed when the instance
 * ends; in a worker it ends with the worker.
 *
 * @param key distinguishes the resources of one instance; if opening fails, the next call tries again
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

/** Closes the resources of an instance. A failure is reported as a warning, and the others are closed all the same. */
export async function releaseHeld({ device }: Pick<InstanceInfo, "device">): Promise<void> {
  const things = heldThings.get(device);
  if (things === undefined) return;
  heldThings.delete(device);
  for (const { close } of things.values()) {
    await close().catch((error) => process.emitWarning(TritonError.from(error).message, "TritonWarning"));
  }
}
