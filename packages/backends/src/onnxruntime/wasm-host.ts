import { errorFor, TritonError } from "@tritonjs/protocol";

/* The limits of a host's WebAssembly. */

/** Bytes that WebAssembly can address. */
export const MOST_BYTES = 4 * 1024 ** 3;

/** The smallest module with an instruction of SIMD. */
const SIMD = [
  ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 1, 5, 1, 0x60, 0, 1, 0x7b, 3, 2, 1, 0, 10, 10, 1, 8, 0],
  ...[0x41, 0, 0xfd, 0x0f, 0xfd, 0x62, 0x0b],
];

/** The part of the host's WebAssembly that is used. Node's types do not have it. */
const { WebAssembly: host } = globalThis as unknown as {
  readonly WebAssembly?: { validate(bytes: Uint8Array): boolean; readonly RuntimeError: new () => Error };
};

/** @throws TritonError UNSUPPORTED without WebAssembly or SIMD */
export function refuseWithoutSimd(): void {
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

/** Whether the memory of WebAssembly is broken or used up, so that no session in it can run again. */
export function isBroken(error: unknown): boolean {
  return (host !== undefined && error instanceof host.RuntimeError) || isOutOfMemory(error);
}

/** Whether an error says that memory is used up. */
export function isOutOfMemory(error: unknown): boolean {
  const { message } = TritonError.from(error);
  return /bad_alloc|out of memory|failed to allocate|could not allocate|greater than 2 GiB/i.test(message);
}

/** The error for a model that does not fit into the memory of WebAssembly. @param why what it has instead */
export function tooLarge(label: string, why: string, cause?: unknown): TritonError {
  const text =
    `cannot load the ONNX model ${label}: expected a model that fits into the 4 GB of WebAssembly, got ${why}; use the ` +
    "engine 'worker'";
  return errorFor("MODEL_NOT_SUPPORTED", text, { cause });
}
