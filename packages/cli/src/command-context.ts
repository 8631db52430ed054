import type { BackendFactory } from "@tritonjs/core/backend";
import type { Terminal } from "@tritonjs/perf/internal";

export interface CommandContext {
  readonly terminal: Terminal;
  readonly additions: CommandAdditions;
  finish(this: void, code: number): void;
}

/** What a program of your own adds to the command. */
export interface CommandAdditions {
  /** Backends in addition to the library's, by their names in configurations. */
  readonly backends?: Readonly<Record<string, BackendFactory>>;
}
