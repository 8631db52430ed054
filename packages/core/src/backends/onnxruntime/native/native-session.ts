import { TritonError } from "@tritonjs/protocol";
import type { NativeFunction } from "../../../koffi.js";
import type { SessionData } from "../create-session.js";
import { ONNX_BFLOAT16, ONNX_DATA_TYPES } from "../read-onnx.js";
import type { SessionTensor, SessionTensors } from "../session-tensors.js";
import { loadLane } from "./native-lanes.js";
import { type NativeTensor, nativeTensors } from "./native-tensors.js";
import type { OrtApi } from "./ort-api.js";
import { createSettings } from "./session-settings.js";

/** An open session. Any number of batches may run on it at a time. */
export interface NativeSession {
  readonly api: OrtApi;
  /** Its address. */
  readonly address: number;
  readonly inputs: readonly NativeTensor[];
  readonly outputs: readonly NativeTensor[];
  /** Releases the session, on which no batch may run. */
  close(): Promise<void>;
}

/**
 * Opens a session on a thread of libuv's pool.
 *
 * @throws TritonError INVALID_ARG with ONNX Runtime's words for a model that does not load
 */
export function openNativeSession(api: OrtApi, data: SessionData): Promise<NativeSession> {
  return loadLane.run(() => open(api, data), undefined);
}

async function open(api: OrtApi, data: SessionData): Promise<NativeSession> {
  const { model } = data;
  let settings: number | undefined;
  try {
    settings = createSettings(api, data);
    const address = await create(api, model, settings);
    return {
      api,
      address,
      inputs: nativeTensors(api, address, "input"),
      outputs: nativeTensors(api, address, "output"),
      close: () => loadLane.run(() => callAsync([], api.releaseSession, address), undefined),
    };
  } catch (cause) {
    const label = typeof model === "string" ? `'${model}'` : "given as bytes";
    const [why] = TritonError.from(cause).message.split("\n");
    throw new TritonError("INVALID_ARG", `cannot load the ONNX model ${label}: ${why}`, {
      reason: "INVALID_MODEL",
      cause,
    });
  } finally {
    if (settings !== undefined) api.releaseSessionOptions(settings);
  }
}

async function create(api: OrtApi, model: string | Uint8Array, settings: number): Promise<number> {
  const result = new BigUint64Array(1);
  const bytes = typeof model === "string" ? pathBytes(model) : model;
  const [to, at] = [result, bytes].map((array) => Number(api.koffi.address(array))) as [number, number];
  const { environment } = api;
  const held = [result, bytes];
  const status =
    typeof model === "string"
      ? await callAsync(held, api.createSession, environment, at, settings, to)
      : await callAsync(held, api.createSessionFromArray, environment, at, bytes.byteLength, settings, to);
  api.check(status);
  return Number(result[0]);
}

/** A path as ONNX Runtime takes it: of 16-bit characters on Windows. */
function pathBytes(path: string): Uint8Array {
  return Buffer.from(`${path}\0`, process.platform === "win32" ? "utf16le" : "utf8");
}

/**
 * Calls a function on a thread of libuv's pool.
 *
 * @param held arrays whose memory the function uses; they are kept alive until it returns
 * @throws the error of koffi if the call cannot be made
 */
export function callAsync<Args extends readonly unknown[], Result>(
  held: readonly unknown[],
  called: NativeFunction<Args, Result>,
  ...args: Args
): Promise<Result> {
  return new Promise((resolve, reject) => {
    let kept: readonly unknown[] | undefined = held;
    called.async(...args, (error, result) => {
      kept = undefined;
      if (error === null) resolve(result);
      else reject(error);
    });
    void kept;
  });
}

/** The tensors of a session for the description of its model. */
export function describeSession({ inputs, outputs }: NativeSession): SessionTensors {
  return { inputs: inputs.flatMap(toTensor), outputs: outputs.flatMap(toTensor) };
}

function toTensor({ name, elementType, dims }: NativeTensor): SessionTensor[] {
  if (elementType === 0) return [];
  const dtype = elementType === ONNX_BFLOAT16 ? "BF16" : ONNX_DATA_TYPES[elementType];
  return [{ name, dtype, shape: dims }];
}
