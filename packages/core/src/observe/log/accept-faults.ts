import { type Clock, realClock } from "../../clock/clock.js";

import type { Log } from "./log.js";

const WARN_EVERY_MS = 60_000;

/**
 * Makes a listener for errors of a listening server, such as a connection that cannot be accepted because no file
 * descriptor is free. Without a listener, such an error ends the process. It logs a warning at most once a minute.
 *
 * @param name name of the frontend in messages
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
