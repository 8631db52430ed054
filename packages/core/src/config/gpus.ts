import { existsSync, readdirSync } from "node:fs";

let found: readonly number[] | undefined;
let looked = false;

/**
 * Numbers of the NVIDIA GPUs that this process may use; undefined where there is no driver for any. Linux tells by
 * its device files; on other systems nothing tells without a program of the driver, so `new Triton({ gpus })` has to.
 * `CUDA_VISIBLE_DEVICES` is obeyed, as CUDA does.
 */
export function gpusOfMachine(): readonly number[] | undefined {
  if (!looked) {
    looked = true;
    found = visible(devices(), process.env.CUDA_VISIBLE_DEVICES);
  }
  return found;
}

function devices(): readonly number[] | undefined {
  if (process.platform !== "linux" || !existsSync("/dev/nvidiactl")) return undefined;
  return readdirSync("/dev")
    .map((name) => /^nvidia(\d+)$/.exec(name)?.[1])
    .filter((number) => number !== undefined)
    .map(Number)
    .sort((a, b) => a - b);
}

/** CUDA counts the visible ones anew, from 0, up to the first that is none. */
export function visible(
  all: readonly number[] | undefined,
  chosen: string | undefined,
): readonly number[] | undefined {
  if (all === undefined || chosen === undefined) return all;
  const entries = chosen.split(",").map((entry) => entry.trim());
  const invalid = entries.findIndex((entry) => entry === "" || entry.startsWith("-"));
  const count = invalid < 0 ? entries.length : invalid;
  return Array.from({ length: Math.min(count, all.length) }, (_, i) => i);
}
