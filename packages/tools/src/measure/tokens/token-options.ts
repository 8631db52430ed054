import type { Goal } from "./goals.js";

/** What is counted of single responses. */
export interface TokenOptions {
  /** Responses arrive one by one, so that there is a first one to wait for. */
  readonly streaming: boolean;
  /** Limits that a request must meet to count into the goodput. */
  readonly goals: readonly Goal[];
}
