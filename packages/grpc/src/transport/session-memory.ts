import type { ResolvedConnectionOptions } from "./connection-options.js";

const BYTES_PER_MEGABYTE = 1_000_000;

/** Node keeps the number in 32 bits. */
const MOST_MEGABYTES = 0xffff_ffff;

/** The memory that a session may hold, in the unit in which Node takes it. */
export function sessionMegabytes({ maxSessionMemory }: ResolvedConnectionOptions): number {
  const megabytes = Math.ceil(maxSessionMemory / BYTES_PER_MEGABYTE);
  return Math.min(Math.max(1, megabytes), MOST_MEGABYTES);
}
