import type { ChildProcess } from "node:child_process";
import { takeLastDescriptors } from "./last-descriptors.js";

/**
 * Starts a child process so that a failure leaks nothing. If the last free descriptors are enough for the pipes of the
 * child but not for its start, Node reports EMFILE and keeps the pipes open for ever.
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
