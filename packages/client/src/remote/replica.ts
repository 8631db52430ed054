import type { TritonError } from "@tritonjs/protocol";
import { nextPause } from "../servers/listed-server.js";
import type { ReplicaClient } from "./replica-client.js";

/** A server that is away is asked at least this often, as its return should be noticed. */
const LONGEST_PAUSE_MS = 5_000;

/** One server with the model: its calls in flight and its health. */
export class Replica {
  /** Calls in flight. */
  outstanding = 0;
  /** True while it gets calls. A replica begins without, until it has said that its model is ready. */
  serving = false;
  /** True once its address has disappeared. */
  removed = false;
  /** Why it last did not serve, after a probe has confirmed that it does not. */
  reason: TritonError | undefined;
  /** Timer of its next probe. */
  timer: ReturnType<typeof setTimeout> | undefined;
  #pauseMs = 0;

  constructor(
    readonly url: string,
    readonly client: ReplicaClient,
  ) {}

  /** Records an answer to a call, which ends the growth of the pauses. */
  worked(): void {
    this.#pauseMs = 0;
  }

  /** Milliseconds until its next probe, with a random part: replicas must not ask a server in step. */
  nextPauseMs(): number {
    this.#pauseMs = nextPause(this.#pauseMs, LONGEST_PAUSE_MS);
    return this.#pauseMs * (0.75 + Math.random() / 4);
  }

  /** True if no pause has grown: the next probe may go out at once. */
  get isFresh(): boolean {
    return this.#pauseMs === 0;
  }
}
