import type { ErrorCode, TritonError } from "@tritonjs/protocol";

/** A failure of one or several requests of a model with the same text. */
export interface FailureNote {
  /** Wall time of the last of these failures, in milliseconds since 1970. */
  readonly at: number;
  readonly code: ErrorCode;
  /** The error's message; long ones are cut to 500 characters. */
  readonly message: string;
  /** Failures in a row, or nearly so, with this code and message. */
  readonly count: number;
}

/** Number of different failures that a model remembers. */
const REMEMBERED = 16;

const LONGEST_MESSAGE = 500;

/** The last failures of a model, with their texts. Equal failures share an entry, so a flood of one hides no other. */
export class ErrorLog {
  #notes: FailureNote[] = [];

  /** @param wallNow milliseconds since 1970 */
  record({ code, message: whole }: TritonError, wallNow: number): void {
    const message = whole.length > LONGEST_MESSAGE ? `${whole.slice(0, LONGEST_MESSAGE - 1)}…` : whole;
    const same = this.#notes.findIndex((note) => note.message === message && note.code === code);
    const count = same < 0 ? 1 : this.#notes[same]!.count + 1;
    if (same >= 0) this.#notes.splice(same, 1);
    else if (this.#notes.length === REMEMBERED) this.#notes.pop();
    this.#notes.unshift({ at: Math.floor(wallNow), code, message, count });
  }

  /** The last failures, latest first; at most 16. */
  get recent(): readonly FailureNote[] {
    return [...this.#notes];
  }
}
