import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from "node:worker_threads";
import { errorFor } from "@tritonjs/protocol";
import type { ModelDescription } from "../instance/backend.js";
import { unreadableFile } from "../system/files.js";
import { unpackError, type WireError } from "../worker/messages.js";
import { ThreadEnding } from "../worker/native-calls.js";
import { ownProgram } from "../worker/open-worker.js";

/** Data of a worker that describes a model, or reads its file. */
export interface DescriptionTask {
  /** URL of the module. */
  readonly entry: string;
  /** The function that it exports. */
  readonly call: "describe" | "read";
  /** For errors of `read`: the file. */
  readonly what: string;
  readonly data: unknown;
  readonly port: MessagePort;
  /** Set to 1 when the answer is in the port. */
  readonly done: Int32Array;
  readonly nativeCalls: Int32Array;
}

type Answer = ModelDescription | WireError;

const PROGRAM = new URL("./description-program.js", import.meta.url);

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
  const task: DescriptionTask = {
    entry: entry.href,
    call: "describe",
    what,
    data,
    port: port2,
    done,
    nativeCalls: ending.state,
  };
  const worker = new Worker(ownProgram(PROGRAM), { workerData: task, transferList: [port2] });
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

/** Bytes of a file that this thread reads itself: that takes some tens of milliseconds at most. */
const SMALL_BYTES = 2 ** 20;

/** Memory of a thread that reads a file, beside its buffers. */
const HEAP_MB = 3_072;

/** A thread that reads for longer is ended. */
const READS_WITHIN_MS = 120_000;

/** A file of a model that comes from outside. */
export interface FileToRead {
  /** For errors: `the ONNX model '/models/x/1/model.onnx'`. */
  readonly what: string;
  readonly bytes: number;
  /** Module that exports `read(data)`, which returns what can be cloned. */
  readonly entry: URL;
  readonly data: unknown;
}

/**
 * Reads a file of a model in a thread of its own, so that the event loop is free and memory that the file asks for is not
 * this process's. A small file is read here.
 *
 * @param read what `read` of the module does
 * @throws TritonError of the reader; INVALID_ARG that names the file for other errors and for too much memory; UNAVAILABLE
 * if it takes too long
 */
export async function readFileInThread<T>(file: FileToRead, read: () => T | Promise<T>): Promise<T> {
  if (file.bytes > SMALL_BYTES) return readInThread(file);
  try {
    return await read();
  } catch (error) {
    throw unreadableFile(file.what, error);
  }
}

function readInThread<T>({ what, entry, data }: FileToRead): Promise<T> {
  const { port1, port2 } = new MessageChannel();
  const ending = new ThreadEnding();
  ownProgram(entry);
  const task: DescriptionTask = {
    entry: entry.href,
    call: "read",
    what,
    data,
    port: port2,
    done: new Int32Array(new SharedArrayBuffer(4)),
    nativeCalls: ending.state,
  };
  const worker = new Worker(ownProgram(PROGRAM), {
    workerData: task,
    transferList: [port2],
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MB },
  });
  const result = new Promise<T>((resolve, reject) => {
    const timer = setTimeout(() => {
      const text = `cannot read ${what}: expected to read it within ${READS_WITHIN_MS / 1000} s`;
      reject(errorFor("LOAD_TIMEOUT", text));
    }, READS_WITHIN_MS);
    port1.once("message", (answer: { value: T } | { error: WireError }) => {
      clearTimeout(timer);
      if ("value" in answer) resolve(answer.value);
      else reject(unpackError(answer.error));
    });
    worker.once("error", (error: NodeJS.ErrnoException) => {
      clearTimeout(timer);
      const isMemory = error.code === "ERR_WORKER_OUT_OF_MEMORY";
      reject(
        unreadableFile(what, isMemory ? new Error(`it takes more than ${HEAP_MB} MiB of memory`) : error),
      );
    });
  });
  return result.finally(() => {
    port1.close();
    worker.once("exit", () => ending.over());
    ending.begin(() => void worker.terminate());
  });
}
