import type { BackendFactory } from "@tritonjs/core/backend";
import type { Terminal } from "@tritonjs/perf/internal";

export interface CommandContext {
  readonly terminal: Terminal;
  readonly extensions: Extensions;
  finish(this: void, code: number): void;
}

/** Extensions that your own program adds to the command. */
export interface Extensions {
  /** Backends in addition to the library's, by their names in configurations. */
  readonly backends?: Readonly<Record<string, BackendFactory>>;
}
