import type { BackendFactory } from "@tritonjs/core/backend";

/** Extensions that your own program adds to the command. */
export interface Extensions {
  /** Backends in addition to the library's, by their names in configurations. */
  readonly backends?: Readonly<Record<string, BackendFactory>>;
}
