import type { ExecutableRequest } from "@tritonjs/core/backend";
import { TritonError } from "@tritonjs/protocol";
import { failureOfError } from "../call/failed-attempt.js";
import type { InferResult } from "../infer/infer-result.js";
import type { CallLimits, PreparedCall, RemoteCalls } from "./remote-calls.js";
import type { Replica } from "./replica.js";
import type { ReplicaPool } from "./replica-pool.js";

/** Largest number of remembered sequences. Beyond it the oldest is evicted, as a server would have evicted it. */
const MOST_SEQUENCES = 65_536;

/** The sequences of a model that keeps their state at its replicas: all requests of a sequence go to one replica. */
export class RemoteSequences {
  readonly #replicas = new Map<bigint | string, Replica>();

  constructor(
    private readonly pool: ReplicaPool,
    private readonly calls: RemoteCalls,
  ) {}

  /**
   * Infers with a request of a sequence. It is not retried: the state would count it twice.
   *
   * @throws TritonError UNAVAILABLE if the replica with the state of the sequence is gone.
   */
  async infer(
    { correlationId, sequenceStart: start, sequenceEnd: end }: ExecutableRequest,
    call: PreparedCall,
    limits: CallLimits,
  ): Promise<InferResult> {
    const id = correlationId!;
    // Removed first, so that it becomes the newest entry below.
    const known = start ? undefined : this.#replicas.get(id);
    this.#replicas.delete(id);
    const sent = { ...call, sequence: { id, start, end } };
    const tried = new Set<Replica>();
    for (;;) {
      const replica = this.#take(id, known, tried);
      if (!end) this.#remember(id, replica);
      try {
        return await this.calls.inferAt(replica, sent, limits);
      } catch (thrown) {
        const { cause } = thrown as TritonError;
        const wasSent = failureOfError((cause ?? {}) as object) !== "not-sent";
        if (wasSent || !start || limits.signal.aborted) throw thrown;
        this.#replicas.delete(id);
        tried.add(replica);
        if (!this.pool.replicas.some((other) => other.serving && !tried.has(other))) throw thrown;
      }
    }
  }

  #take(id: bigint | string, known: Replica | undefined, tried: ReadonlySet<Replica>): Replica {
    if (known === undefined) {
      const replica = this.pool.take(false, tried);
      if (replica !== undefined) return replica;
    } else if (this.pool.takeThis(known)) return known;
    const { model } = this.pool.settings;
    const where = known === undefined ? "no replica serves" : `its replica ${known.url} does not serve`;
    throw new TritonError("UNAVAILABLE", `sequence '${id}' of model '${model}': ${where}; start it again`, {
      reason: "SEQUENCE_LOST",
    });
  }

  #remember(id: bigint | string, replica: Replica): void {
    this.#replicas.set(id, replica);
    if (this.#replicas.size > MOST_SEQUENCES) this.#replicas.delete(this.#replicas.keys().next().value!);
  }
}
