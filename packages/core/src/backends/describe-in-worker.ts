import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from "node:worker_threads";
import { errorFor } from "@tritonjs/protocol";
import type { ModelDescription } from "../instance/backend.js";
import { unpackError, type WireError } from "../worker/messages.js";
import { ThreadEnding } from "../worker/native-calls.js";
import { ownProgram } from "../worker/open-worker.js";

/** Data of a worker that describes a model. */
export interface DescriptionTask {
  /** URL of the module that exports `describe`. */
  readonly entry: string;
  readonly data: unknown;
  readonly port: MessagePort;
  /** Set to 1 when the answer is in the port. */
  readonly done: Int32Array;
  readonly nativeCalls: Int32Array;
}

type Answer = ModelDescription | WireError;

/**
 * Describes a model in a worker, for the synchronous `bind`. This thread blocks meanwhile, as it does to read a file.
 *
 * @param entry module that exports `describe(data)`, which returns the description
 * @param what for errors: `the model 'x'`
 * @throws TritonError from the worker, UNAVAILABLE when the worker has no program or does not answer in time
 */
export function describeInWorker(
  entry: URL,
  data: unknown,
  withinMs: number,
  what: string,
): ModelDescription {
  const { port1, port2 } = new MessageChannel();
  const done = new Int32Array(new SharedArrayBuffer(4));
  const ending = new ThreadEnding();
  ownProgram(entry);
  const task: DescriptionTask = { entry: entry.href, data, port: port2, done, nativeCalls: ending.state };
  const program = ownProgram(new URL("./description-program.js", import.meta.url));
  const worker = new Worker(program, { workerData: task, transferList: [port2] });
  try {
    Atomics.wait(done, 0, 0, withinMs);
    const answer = receiveMessageOnPort(port1)?.message as Answer | undefined;
    if (answer === undefined)
      throw errorFor(
        "LOAD_TIMEOUT",
        `cannot describe ${what}: expected an answer of its worker within ${withinMs / 1000} s, got none`,
      );
    if ("code" in answer) throw unpackError(answer);
    return answer;
  } finally {
    port1.close();
    worker.once("exit", () => ending.over());
    ending.begin(() => void worker.terminate());
  }
}
