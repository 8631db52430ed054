import { createHash, timingSafeEqual } from "node:crypto";
import type { RouteGroup } from "./routes/route.js";

/** What a client has to send to use a group of routes. */
export interface Restriction {
  /** Name of the header. */
  readonly header: string;
  /** Its value, exactly. */
  readonly value: string;
}

/** The groups that are restricted; all others are open. */
export type Restrictions = Readonly<Partial<Record<RouteGroup, Restriction>>>;

/**
 * True when the header is there and has the value. The time it takes says nothing about where they differ, nor
 * about how long the value is.
 */
export function isAllowed({ value }: Restriction, sent: string | undefined): boolean {
  return sent !== undefined && timingSafeEqual(digest(sent), digest(value));
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
