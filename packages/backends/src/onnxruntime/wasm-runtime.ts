import { readFile, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { findInstalled, importPeer } from "@tritonjs/core/internal/worker";
import { errorFor, TritonError } from "@tritonjs/protocol";
import type { InferenceSession } from "onnxruntime-node";
import { externalLocations, modelLabel } from "./onnx-file.js";
import type { SessionData } from "./onnx-options.js";

/*
 * The engine `wasm`: ONNX Runtime compiled to WebAssembly, by the package `onnxruntime-web`. It has the interface of
 * `onnxruntime-node`, so sessions are used alike. What differs is here: threads belong to the runtime and not to a
 * session, files are read by JavaScript, and memory ends at 4 GB.
 */

/** Bytes that WebAssembly can address. */
const MOST_BYTES = 4 * 1024 ** 3;

/** The smallest module with an instruction of SIMD. */
const SIMD = [
  ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 1, 5, 1, 0x60, 0, 1, 0x7b, 3, 2, 1, 0, 10, 10, 1, 8, 0],
  ...[0x41, 0, 0xfd, 0x0f, 0xfd, 0x62, 0x0b],
];

/** The part of the host's WebAssembly that is used. Node's types do not have it. */
const { WebAssembly: host } = globalThis as unknown as {
  readonly WebAssembly?: { validate(bytes: Uint8Array): boolean; readonly RuntimeError: new () => Error };
};

/** The part of `onnxruntime-web` that is used. */
export interface OrtWeb {
  readonly env: { readonly wasm: { numThreads?: number; proxy?: boolean } };
  readonly InferenceSession: {
    create(model: Uint8Array, options: object): Promise<InferenceSession>;
  };
}

/** True if `onnxruntime-web` is installed next to this package or to the program. */
export function hasOrtWeb(): boolean {
  return findInstalled("onnxruntime-web", import.meta.url) !== undefined;
}

/**
 * Loads ONNX Runtime as WebAssembly.
 *
 * @param threads threads of an operator. All sessions of a thread of JavaScript share those of the first session
 * @throws TritonError UNAVAILABLE if `onnxruntime-web` is not installed, UNSUPPORTED without WebAssembly or SIMD
 */
export async function importOrtWeb(threads: number): Promise<OrtWeb> {
  refuseWithoutSimd();
  let ort: OrtWeb;
  try {
    ort = await importPeer<OrtWeb>("onnxruntime-web", import.meta.url);
  } catch (error) {
    const text = `cannot load onnxruntime-web (${TritonError.from(error).message}): install it next to @tritonjs/backends`;
    throw errorFor("PACKAGE_NOT_INSTALLED", text, { cause: error });
  }
  // Threads of WebAssembly share memory, which some hosts do not have.
  ort.env.wasm.numThreads = typeof SharedArrayBuffer === "undefined" ? 1 : threads;
  ort.env.wasm.proxy = false;
  return ort;
}

function refuseWithoutSimd(): void {
  const lack =
    host === undefined
      ? "WebAssembly"
      : host.validate(new Uint8Array(SIMD))
        ? undefined
        : "WebAssembly with SIMD";
  if (lack === undefined) return;
  const text = `engine 'wasm': expected a host with ${lack}, got one without it`;
  throw errorFor("PLATFORM_NOT_SUPPORTED", text);
}

/**
 * Opens a session of ONNX Runtime as WebAssembly.
 *
 * @throws TritonError INVALID_ARG with ONNX Runtime's words for a model that does not load, UNSUPPORTED for a model
 * that needs more than the 4 GB that WebAssembly can address
 */
export async function createWasmSession(ort: OrtWeb, data: SessionData): Promise<InferenceSession> {
  const label = modelLabel(data.model);
  try {
    const { bytes, externalData } = await readModel(data.model, label);
    return await ort.InferenceSession.create(bytes, {
      ...data.sessionOptions,
      ...(externalData.length > 0 && { externalData }),
      executionProviders: ["wasm"],
    });
  } catch (cause) {
    const [why] = TritonError.from(cause).message.split("\n");
    if (TritonError.is(cause)) throw cause;
    if (isOutOfMemory(cause)) throw tooLarge(label, why!, cause);
    throw errorFor("INVALID_MODEL", `cannot load the ONNX model ${label}: ${why}`, { cause });
  }
}

/**
 * Reads the model and the files of its weights: WebAssembly opens no files.
 *
 * @throws TritonError UNSUPPORTED if they have more bytes than WebAssembly can address
 */
async function readModel(model: string | Uint8Array, label: string) {
  if (typeof model !== "string") return { bytes: model, externalData: [] };
  const external = [...externalLocations(model)].map((path) => ({
    path,
    file: join(dirname(model), path),
  }));
  let total = 0;
  for (const file of [model, ...external.map((one) => one.file)]) total += (await stat(file)).size;
  if (total >= MOST_BYTES) throw tooLarge(label, `files of ${total} bytes`);
  const [bytes, ...contents] = await Promise.all(
    [model, ...external.map(({ file }) => file)].map((file) => readFile(file)),
  );
  return { bytes: bytes!, externalData: external.map(({ path }, i) => ({ path, data: contents[i]! })) };
}

/** Whether the memory of WebAssembly is broken or used up, so that no session in it can run again. */
export function isBroken(error: unknown): boolean {
  return (host !== undefined && error instanceof host.RuntimeError) || isOutOfMemory(error);
}

function isOutOfMemory(error: unknown): boolean {
  const { message } = TritonError.from(error);
  return /bad_alloc|out of memory|failed to allocate|could not allocate|greater than 2 GiB/i.test(message);
}

function tooLarge(label: string, why: string, cause?: unknown): TritonError {
  const text =
    `cannot load the ONNX model ${label}: expected a model that fits into the 4 GB of WebAssembly, got ${why}; use the ` +
    "engine 'worker'";
  return errorFor("MODEL_NOT_SUPPORTED", text, { cause });
}
