import {
  MessageChannel,
  type MessagePort,
  type ResourceLimits,
  receiveMessageOnPort,
  Worker,
} from "node:worker_threads";
import type { ModelDescription } from "@tritonjs/core/backend";
import { ownProgram, ThreadEnding, unpackError, type WireError } from "@tritonjs/core/internal";
import { unreadableFile } from "@tritonjs/core/internal/worker";
import { errorFor } from "@tritonjs/protocol";

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

/** What the worker posts. */
export type ProgramAnswer<T = unknown> = { readonly value: T } | { readonly error: WireError };

/** Starts a worker with the program. `end` ends it when its native calls are over. */
function startProgram(
  entry: URL,
  task: Pick<DescriptionTask, "call" | "what" | "data">,
  resourceLimits?: ResourceLimits,
) {
  const { port1, port2 } = new MessageChannel();
  const done = new Int32Array(new SharedArrayBuffer(4));
  const ending = new ThreadEnding();
  ownProgram(entry);
  const workerData: DescriptionTask = {
    ...task,
    entry: entry.href,
    port: port2,
    done,
    nativeCalls: ending.state,
  };
  const program = ownProgram(new URL("./description-program.js", import.meta.url));
  const worker = new Worker(program, { workerData, transferList: [port2], resourceLimits });
  const end = () => {
    port1.close();
    worker.once("exit", () => ending.over());
    ending.begin(() => void worker.terminate());
  };
  return { worker, port: port1, done, end };
}

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
  const { port, done, end } = startProgram(entry, { call: "describe", what, data });
  try {
    Atomics.wait(done, 0, 0, withinMs);
    const answer = receiveMessageOnPort(port)?.message as ProgramAnswer<ModelDescription> | undefined;
    if (answer === undefined)
      throw errorFor(
        "LOAD_TIMEOUT",
        `cannot describe ${what}: expected an answer of its worker within ${withinMs / 1000} s, got none`,
      );
    if ("error" in answer) throw unpackError(answer.error);
    return answer.value;
  } finally {
    end();
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
  const limits = { maxOldGenerationSizeMb: HEAP_MB };
  const { worker, port, end } = startProgram(entry, { call: "read", what, data }, limits);
  let timer: NodeJS.Timeout | undefined;
  const result = new Promise<T>((resolve, reject) => {
    timer = setTimeout(() => {
      const text = `cannot read ${what}: expected to read it within ${READS_WITHIN_MS / 1000} s`;
      reject(errorFor("LOAD_TIMEOUT", text));
    }, READS_WITHIN_MS);
    port.once("message", (answer: ProgramAnswer<T>) => {
      if ("error" in answer) reject(unpackError(answer.error));
      else resolve(answer.value);
    });
    worker.once("error", (error: NodeJS.ErrnoException) => {
      const isMemory = error.code === "ERR_WORKER_OUT_OF_MEMORY";
      const cause = isMemory ? new Error(`it takes more than ${HEAP_MB} MiB of memory`) : error;
      reject(unreadableFile(what, cause));
    });
  });
  return result.finally(() => {
    clearTimeout(timer);
    end();
  });
}
