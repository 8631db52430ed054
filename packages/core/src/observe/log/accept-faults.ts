import { type Clock, realClock } from "../../clock/clock.js";

import type { Log } from "./log.js";

const WARN_EVERY_MS = 60_000;

/**
 * Makes a listener for errors of a server that listens, as when a connection cannot be accepted for want of a file
 * descriptor: without a listener such an error ends the process. It warns once a minute.
 *
 * @param name what the frontend is called in messages
 */
export function acceptFaults(log: Log, name: string, clock: Clock = realClock): (error: Error) => void {
  let warnedAt = Number.NEGATIVE_INFINITY;
  return ({ message }) => {
    const now = clock.now();
    if (now - warnedAt < WARN_EVERY_MS) return;
    warnedAt = now;
    log.warning(`${name} cannot accept connections: ${message}`);
  };
}
