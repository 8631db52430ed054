import type { Extensions } from "../extensions.js";
import type { Terminal } from "../terminal.js";

/** What a command is run with. */
export interface CommandContext {
  readonly terminal: Terminal;
  readonly extensions: Extensions;
  /** Told the exit code of a command that came to its end. */
  finish(this: void, code: number): void;
}
