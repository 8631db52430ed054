import { TritonError } from "@tritonjs/protocol";
import { settledWithin } from "../../clock/bounded-wait.js";
import type { Clock } from "../../clock/clock.js";

/** Triton's limit. A model that takes longer counts as not ready. */
const ANSWERS_WITHIN_MS = 5000;

/** Asks a process for `is_ready` of its model. At most one question is open, and all callers share its answer. */
export class PythonReadiness {
  #asked: Promise<void> | undefined;
  #answer: ((error?: TritonError) => void) | undefined;

  constructor(
    private readonly instanceName: string,
    private readonly clock: Clock,
    private readonly ask: () => void,
  ) {}

  /**
   * Resolves when the model says that it is ready.
   *
   * @throws TritonError UNAVAILABLE when the model is not ready or does not answer in time, INTERNAL for errors that it
   * raises
   */
  async check(): Promise<void> {
    const asked = this.#asked ?? this.#question();
    if (await settledWithin(this.clock, ANSWERS_WITHIN_MS, asked)) return asked;
    throw new TritonError("UNAVAILABLE", "Timed out waiting for user-defined is_ready() response", {
      reason: "MODEL_NOT_READY",
    });
  }

  /** Handles the answer of the model. */
  answered({ ready, error }: { readonly ready?: boolean; readonly error?: string }): void {
    if (error !== undefined) this.#answer?.(new TritonError("INTERNAL", error));
    else if (ready) this.#answer?.();
    else {
      const text = `Model '${this.instanceName}' is not ready (user-defined check failed).`;
      this.#answer?.(new TritonError("UNAVAILABLE", text, { reason: "MODEL_NOT_READY" }));
    }
  }

  /** Fails the open question when the process has ended. */
  fail(error: TritonError): void {
    this.#answer?.(error);
  }

  #question(): Promise<void> {
    const asked = new Promise<void>((resolve, reject) => {
      this.#answer = (error) => {
        this.#asked = undefined;
        this.#answer = undefined;
        if (error === undefined) resolve();
        else reject(error);
      };
    });
    // The callers may have stopped waiting.
    asked.catch(() => {});
    this.#asked = asked;
    this.ask();
    return asked;
  }
}
