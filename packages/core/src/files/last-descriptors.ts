import { closeSync, openSync } from "node:fs";
import { devNull } from "node:os";

/** More descriptors than the start of any child process or thread needs: two for each of its pipes, and those of libuv. */
const ENOUGH = 24;

/**
 * Takes all free descriptors if fewer than 24 are free, so that a start fails before it opens the first one.
 *
 * @returns function that gives them back, to be called once the start has succeeded or failed
 */
export function takeLastDescriptors(): () => void {
  const taken: number[] = [];
  const giveBack = () => {
    for (const descriptor of taken.splice(0)) closeSync(descriptor);
  };
  try {
    while (taken.length < ENOUGH) taken.push(openSync(devNull, "r"));
    giveBack();
  } catch {
    // No descriptor is free now.
  }
  return giveBack;
}
