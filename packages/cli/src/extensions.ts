import type { BackendFactory } from "@tritonjs/core/backend";

/** What a program of your own adds to the command. */
export interface Extensions {
  /** Backends beside those of the library, by the name that configurations have for them. */
  readonly backends?: Readonly<Record<string, BackendFactory>>;
}
