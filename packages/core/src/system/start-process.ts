import type { ChildProcess } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { devNull } from "node:os";

/**
 * Starts a child process so that a failure leaks nothing. If the last free descriptors are enough for the pipes of the
 * child but not for its start, Node reports EMFILE and never closes the pipes.
 *
 * @param start calls `spawn` or `fork`
 */
export function startProcess(start: () => ChildProcess): ChildProcess {
  const giveBack = takeLastDescriptors();
  try {
    return start();
  } finally {
    giveBack();
  }
}

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

let last = 0;

/** Resident memory in bytes. When no descriptor is free to read it, the value of the last call, or 0. */
export function residentBytes(): number {
  try {
    last = process.memoryUsage.rss();
  } catch {
    // EMFILE or ENFILE: Node.js reads it from a file.
  }
  return last;
}
