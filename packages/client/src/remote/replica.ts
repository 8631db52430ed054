import type { TritonError } from "@tritonjs/protocol";
import { nextPause } from "../servers/listed-server.js";
import type { ReplicaClient } from "./replica-client.js";

/** Longest pause between two probes of a server that is away, so that its return is noticed. */
const LONGEST_PAUSE_MS = 5_000;

/** One server with the model: its calls in flight and its health. */
export class Replica {
  /** Calls in flight. */
  outstanding = 0;
  /** True while it gets calls. False at first, until the replica reports that its model is ready. */
  serving = false;
  /** True once its address has disappeared. */
  removed = false;
  /** Reason why it does not serve, once a probe has confirmed it. */
  reason: TritonError | undefined;
  /** Timer of its next probe. */
  timer: ReturnType<typeof setTimeout> | undefined;
  #pauseMs = 0;

  constructor(
    readonly url: string,
    readonly client: ReplicaClient,
  ) {}

  /** Records an answer to a call, which resets the pause. */
  worked(): void {
    this.#pauseMs = 0;
  }

  /** Milliseconds until its next probe, with jitter, so that several clients do not probe a server in step. */
  nextPauseMs(): number {
    this.#pauseMs = nextPause(this.#pauseMs, LONGEST_PAUSE_MS);
    return this.#pauseMs * (0.75 + Math.random() / 4);
  }

  /** True if no pause has grown: the next probe may go out at once. */
  get isFresh(): boolean {
    return this.#pauseMs === 0;
  }
}
