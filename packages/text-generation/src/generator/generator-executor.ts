import { AsyncResource } from "node:async_hooks";
import { setImmediate } from "node:timers/promises";
import type { ExecutableRequest, Execution, Executor, ExecutorContext } from "@tritonjs/core/backend";
import { onAbort, TritonError } from "@tritonjs/protocol";
import type { TextRequest } from "../request/text-request.js";
import { GenerationContext } from "./generation-context.js";
import { PieceSource } from "./piece-source.js";
import { TextAnswer } from "./text-answer.js";
import type { TextCallback } from "./text-callback.js";
import { readPiece } from "./yielded-piece.js";

/** Longest time in milliseconds without a turn of the event loop. */
const MAX_MS = 5;

/** Runs a callback that generates text, for several requests at a time, on this thread. */
export class GeneratorExecutor implements Executor {
  readonly isolation = "inline";
  readonly mustFinish = false;
  readonly details = {};
  readonly #callback: TextCallback;
  readonly #read: (request: ExecutableRequest, modelName: string) => TextRequest;
  readonly #context: ExecutorContext;
  readonly #asyncContext = new AsyncResource("TritonInstance");

  /**
   * @param read reads a request
   * @param capacity number of requests at a time
   */
  constructor(
    callback: TextCallback,
    read: (request: ExecutableRequest, modelName: string) => TextRequest,
    context: ExecutorContext,
    readonly capacity: number,
  ) {
    this.#callback = callback;
    this.#read = read;
    this.#context = context;
  }

  async start(): Promise<void> {}

  async stop(): Promise<void> {
    this.#asyncContext.emitDestroy();
  }

  async execute(execution: Execution): Promise<undefined> {
    // Leaves the async context of the request whose end started this execution.
    await this.#asyncContext.runInAsyncScope(() =>
      Promise.all(
        execution.requests.map(async (request, index) => {
          try {
            await this.#answer(execution, request, index);
          } catch (thrown) {
            execution.sendError(index, TritonError.from(thrown), true);
          }
        }),
      ),
    );
    return undefined;
  }

  async #answer(execution: Execution, request: ExecutableRequest, index: number): Promise<void> {
    const { modelName } = this.#context.info;
    const read = this.#read(request, modelName);
    const answer = new TextAnswer(read, modelName);
    const context = new GenerationContext(this.#context, execution, request);
    execution.inputsReady();
    const { prompt, messages, tools, templateVariables, addGenerationPrompt, sampling } = read;
    const given = { prompt, messages, tools, templateVariables, addGenerationPrompt, sampling };
    const within = execution.within ?? ((fn) => fn());
    const source = await PieceSource.open(
      () => this.#callback(given, context),
      (fn) => request.runInContext(() => within(fn)),
    );
    const stopListening = onAbort(request.signal, () => source.cancel());
    try {
      if (request.signal.aborted) source.cancel();
      await this.#send(execution, index, source, answer);
    } catch (thrown) {
      source.cancel();
      throw thrown;
    } finally {
      stopListening();
    }
  }

  /** Sends responses for as long as the callback yields pieces and the request wants them. */
  async #send(execution: Execution, index: number, source: PieceSource, answer: TextAnswer): Promise<void> {
    const { clock } = execution;
    let turn = clock.now();
    let complete = false;
    while (!complete && execution.isOpen(index)) {
      const { done, value } = await source.next();
      if (done) break;
      complete = answer.take(readPiece(value, this.#context.info.modelName));
      const outputs = complete ? undefined : answer.next();
      if (outputs !== undefined) execution.send(index, outputs);
      await execution.writable(index);
      if (clock.now() - turn <= MAX_MS) continue;
      // A generator that never waits would otherwise starve timers and sockets.
      await setImmediate();
      turn = clock.now();
    }
    execution.outputsReady();
    if (execution.isOpen(index)) {
      const outputs = answer.last();
      if (outputs === undefined) execution.finish(index);
      else execution.send(index, outputs, true);
    }
    await source.end();
  }
}
