import {
  MessageChannel,
  type MessagePort,
  receiveMessageOnPort,
  Worker,
  workerData,
} from "node:worker_threads";
import { TritonError } from "@tritonjs/protocol";
import type { ModelDescription } from "../instance/backend.js";
import { packError, unpackError, type WireError } from "../worker/messages.js";
import { guardNativeCalls, ThreadEnding } from "../worker/native-calls.js";
import { ownProgram } from "../worker/open-worker.js";

/** The data that the worker is started with. */
interface Question {
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
 * @param entry program of the worker, which calls {@link answerDescription}
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
  const question: Question = { data, port: port2, done, nativeCalls: ending.state };
  const worker = new Worker(ownProgram(entry), { workerData: question, transferList: [port2] });
  try {
    Atomics.wait(done, 0, 0, withinMs);
    const answer = receiveMessageOnPort(port1)?.message as Answer | undefined;
    if (answer === undefined)
      throw new TritonError(
        "UNAVAILABLE",
        `cannot describe ${what}: expected an answer of its worker within ${withinMs / 1000} s, got none`,
        {
          reason: "LOAD_TIMEOUT",
        },
      );
    if ("code" in answer) throw unpackError(answer);
    return answer;
  } finally {
    port1.close();
    worker.once("exit", () => ending.over());
    ending.begin(() => void worker.terminate());
  }
}

/** The worker's side: answers with the result of `describe`. */
export async function answerDescription(
  describe: (data: unknown) => Promise<ModelDescription>,
): Promise<void> {
  const { data, port, done, nativeCalls } = workerData as Question;
  guardNativeCalls(nativeCalls);
  const answer = await describe(data).catch((error): WireError => packError(error));
  port.postMessage(answer);
  Atomics.store(done, 0, 1);
  Atomics.notify(done, 0);
}
