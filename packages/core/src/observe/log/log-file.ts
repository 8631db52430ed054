import { closeSync, openSync, writeSync } from "node:fs";
import { TritonError } from "@tritonjs/protocol";

/**
 * The file of a log. A line that cannot be written, because the disk is full or fails, is lost, and the server goes on.
 * The first such failure becomes a warning of the process. The file says how many lines are missing once it can be
 * written again.
 */
export class LogFile {
  readonly #path: string;
  #descriptor: number | undefined;
  #lost = 0;
  /** True while the last line in the file is incomplete. */
  #isTorn = false;

  /** @throws TritonError INVALID_ARG if the file cannot be opened */
  constructor(path: string) {
    this.#path = path;
    try {
      this.#descriptor = openSync(path, "a");
    } catch (cause) {
      throw new TritonError("INVALID_ARG", `failed to open log file '${path}'`, {
        reason: "INVALID_OPTION",
        cause,
      });
    }
  }

  /** Writes a line, which has its line feed. Does nothing after `close`. */
  write(line: string): void {
    if (this.#descriptor === undefined) return;
    const opening = this.#isTorn ? "\n" : "";
    const gap = this.#lost === 0 ? "" : `${this.#lost} lines of the log were lost\n`;
    try {
      this.#writeAll(Buffer.from(opening + gap + line), this.#descriptor);
      this.#lost = 0;
    } catch (error) {
      if (this.#lost++ > 0) return;
      process.emitWarning(
        `cannot write to the log file '${this.#path}': ${(error as Error).message}; lines are lost until it can be written`,
        "TritonWarning",
      );
    }
  }

  close(): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
    this.#descriptor = undefined;
  }

  /** A full disk may take the first part of a line. */
  #writeAll(bytes: Buffer, descriptor: number): void {
    for (let at = 0; at < bytes.byteLength; ) {
      at += writeSync(descriptor, bytes, at);
      this.#isTorn = at < bytes.byteLength;
    }
  }
}
