import type { Frontend, FrontendAddress } from "@tritonjs/core/internal/server";
import type { Served } from "../service/service-of.js";
import type { ListenAt } from "./listen.js";

/** A frontend over an `InferenceService`: that of its server, or one that a program or a thread has. */
export interface ServiceFrontend extends Frontend {
  /** How to make this frontend in another thread; undefined if it can run only in this one. */
  readonly threaded?: ThreadedFrontend | undefined;
  start(served: Served): Promise<FrontendAddress>;
}

/** How another thread can make the same frontend. */
export interface ThreadedFrontend {
  /** URL of a module, and the name of its function that makes the frontend from the options. */
  readonly module: string;
  readonly name: string;
  /** Options of the frontend, which can be cloned, with `port`, `address` and `reusePort`. */
  readonly options: ThreadedFrontendOptions;
  /** How to listen at its port, besides the options. */
  readonly listening: Pick<ListenAt, "portHint" | "joinsFamilies">;
  /** Makes the error of this thread for a failure to open; the failure itself unless given. */
  readonly startError?: (failure: unknown) => unknown;
}

/** Options of every frontend that can run in another thread. */
export interface ThreadedFrontendOptions {
  readonly port: number;
  readonly address: string;
  readonly reusePort: boolean;
}

/** Pages for people, which a frontend serves besides its own answers. */
export interface WebPages {
  /** Prefix of the paths of all pages: `/dashboard`. */
  readonly path: string;
  /** Where a frontend serves them. Set by that frontend when it starts, for others that point there. */
  servedAt?: FrontendAddress;
  /** Makes the handler of all paths below `path`. */
  open(served: Served): (request: Request) => Promise<Response>;
}
