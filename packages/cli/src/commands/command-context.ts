import type { Extensions } from "../extensions.js";
import type { Terminal } from "../terminal.js";

/** The context that a command runs in. */
export interface CommandContext {
  readonly terminal: Terminal;
  readonly extensions: Extensions;
  /** Called with the exit code when a command ends. */
  finish(this: void, code: number): void;
}
