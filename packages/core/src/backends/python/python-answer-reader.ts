import { TritonError } from "@tritonjs/protocol";
import { RESCHEDULE } from "../../callable/reschedule.js";
import type { ExecutorContext } from "../../instance/backend.js";
import type { Execution, ExecutionResult } from "../../instance/executor.js";
import { type FromPython, type PythonResult, readError, type WireResponse } from "./messages.js";
import type { OpenBatches } from "./open-batches.js";
import { ResponseReader } from "./response-reader.js";

/** Reads the answers of a Python model: results of `execute`, and responses of senders. */
export class PythonAnswerReader {
  readonly #responses: ResponseReader;

  /** @param running the batch that `execute` is running */
  constructor(
    private readonly context: Pick<ExecutorContext, "checker" | "log" | "info">,
    private readonly open: OpenBatches,
    private readonly send: (header: object) => void,
    private readonly running: () => number | undefined,
  ) {
    this.#responses = new ResponseReader(context);
  }

  /** Reads the result of `execute` for one request; null when a sender answers the request. */
  result(
    execution: Execution,
    index: number,
    result: PythonResult,
    body: Uint8Array,
  ): ExecutionResult | null {
    if (result === null) return null;
    if (result === "again") return RESCHEDULE;
    if (!("missing" in result)) return this.#read(execution, index, result, body);
    const { modelName } = this.context.info;
    const text = `model '${modelName}' returned None for a request without taking its response sender: return a response or call get_response_sender()`;
    return new TritonError("INTERNAL", text);
  }

  /** Delivers a response from a sender. */
  respond(message: Extract<FromPython, { type: "response" }>, body: Uint8Array): void {
    const { batch, index } = message;
    const execution = this.open.get(batch);
    if (execution === undefined || !execution.isOpen(index)) return;
    // The first response of a model that is not decoupled is its last.
    const final = message.final || !execution.decoupled;
    if (message.outputs === undefined && message.error === undefined) execution.finish(index);
    else {
      const result = this.#read(execution, index, message, body);
      if (TritonError.is(result)) execution.sendError(index, result, final);
      else execution.send(index, result, final);
    }
    if (final) {
      this.#closeWhenOver(batch);
      return;
    }
    const taken = () => this.send({ type: "taken", batch, index });
    const wait = execution.writable(index);
    if (wait === undefined) taken();
    else void wait.then(taken);
  }

  /** Fails a request whose sender the model dropped before its last response. */
  abandoned(batch: number, index: number): void {
    const execution = this.open.get(batch);
    if (execution === undefined) return;
    const { modelName } = this.context.info;
    const text = `model '${modelName}' released a request without sending TRITONSERVER_RESPONSE_COMPLETE_FINAL`;
    execution.sendError(index, new TritonError("INTERNAL", text), true);
    this.#closeWhenOver(batch);
  }

  /** Keeps the running batch open, because `execute` may call other models on its behalf. */
  #closeWhenOver(batch: number): void {
    if (this.running() !== batch) this.open.closeWhenOver(batch);
  }

  #read(execution: Execution, index: number, wire: WireResponse, body: Uint8Array) {
    if (wire.error !== undefined) return readError(wire.error);
    const { rows } = execution.requests[index]!;
    return this.#responses.read(wire, body, execution.decoupled ? undefined : rows);
  }
}
