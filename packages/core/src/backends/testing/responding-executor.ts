import { TritonError } from "@tritonjs/protocol";
import type { Execution, Executor } from "../../instance/executor.js";

/** Sends the responses to the request at `index` of a batch while the request is open. */
export type Respond = (execution: Execution, index: number) => Promise<void>;

/**
 * Runs a decoupled model whose instance is free before its responses are sent. Each request has a loop of its own that
 * answers it.
 */
export class RespondingExecutor implements Executor {
  readonly details = {};
  readonly mustFinish = false;
  readonly takesAnyBatchSize = true;
  readonly #underWay = new Set<Promise<void>>();

  readonly #stopped = new AbortController();

  /** @param pause how long a batch keeps the instance; the signal ends it */
  constructor(
    private readonly respond: Respond,
    private readonly pause: (execution: Execution, signal: AbortSignal) => Promise<void> = async () => {},
  ) {}

  async start(): Promise<void> {}

  async execute(execution: Execution): Promise<undefined> {
    execution.inputsReady();
    for (const index of execution.requests.keys()) {
      const loop = this.#answer(execution, index);
      this.#underWay.add(loop);
      void loop.finally(() => this.#underWay.delete(loop));
    }
    await this.pause(execution, AbortSignal.any([execution.signal, this.#stopped.signal]));
    execution.outputsReady();
    return undefined;
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    await Promise.all(this.#underWay);
  }

  async #answer(execution: Execution, index: number): Promise<void> {
    try {
      await this.respond(execution, index);
      execution.finish(index);
    } catch (error) {
      execution.sendError(index, TritonError.from(error), true);
    }
  }
}
