import { readFile, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { findInstalled, importPeer } from "@tritonjs/core/internal/worker";
import { errorFor, TritonError } from "@tritonjs/protocol";
import type { InferenceSession } from "onnxruntime-node";
import { externalLocations, modelLabel } from "./onnx-file.js";
import type { SessionData } from "./onnx-options.js";
import { isOutOfMemory, MOST_BYTES, refuseWithoutSimd, tooLarge } from "./wasm-host.js";

/*
 * The engine `wasm`: ONNX Runtime compiled to WebAssembly, by `onnxruntime-web` or the build of it
 * in `@tritonjs/onnxruntime-wasm`. It has the interface of
 * `onnxruntime-node`, so sessions are used alike. What differs is here: threads belong to the runtime and not to a
 * session, files are read by JavaScript, and memory ends at 4 GB.
 */

/** The part of `onnxruntime-web` that is used. */
interface OrtWeb {
  readonly env: { readonly wasm: { numThreads?: number; proxy?: boolean } };
  readonly InferenceSession: {
    create(model: Uint8Array, options: object): Promise<InferenceSession>;
  };
}

/** Packages with ONNX Runtime as WebAssembly: all its builds, or the one that is needed. */
const ORT_WEB = ["onnxruntime-web", "@tritonjs/onnxruntime-wasm"] as const;

/** The package that is installed next to this package or to the program, if there is one. */
function installedOrtWeb(): (typeof ORT_WEB)[number] | undefined {
  return ORT_WEB.find((name) => findInstalled(name, import.meta.url) !== undefined);
}

/** True if a package with ONNX Runtime as WebAssembly is installed next to this package or to the program. */
export function hasOrtWeb(): boolean {
  return installedOrtWeb() !== undefined;
}

/**
 * Loads ONNX Runtime as WebAssembly.
 *
 * @param threads threads of an operator. All sessions of a thread of JavaScript share those of the first session
 * @throws TritonError UNAVAILABLE if no package with it is installed, UNSUPPORTED without WebAssembly or SIMD
 */
export async function importOrtWeb(threads: number): Promise<OrtWeb> {
  refuseWithoutSimd();
  const name = installedOrtWeb() ?? "@tritonjs/onnxruntime-wasm";
  let ort: OrtWeb;
  try {
    ort = await importPeer<OrtWeb>(name, import.meta.url);
  } catch (error) {
    const text = `cannot load ${name} (${TritonError.from(error).message}): install it next to @tritonjs/backends`;
    throw errorFor("PACKAGE_NOT_INSTALLED", text, { cause: error });
  }
  // Threads of WebAssembly share memory, which some hosts do not have.
  ort.env.wasm.numThreads = typeof SharedArrayBuffer === "undefined" ? 1 : threads;
  ort.env.wasm.proxy = false;
  return ort;
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
    return await ort.InferenceSession.create(data.content ?? bytes, {
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
