import { unbundledRequire } from "./unbundled.js";

/** A function of a native library. Addresses and integers are numbers. */
export interface NativeFunction<Args extends readonly unknown[], Result> {
  (...args: Args): Result;
  /** Runs the function on a thread of libuv's pool. */
  async(...args: [...Args, (error: Error | null, result: Result) => void]): void;
}

/** A native library. */
export interface NativeLibrary {
  // biome-ignore lint/suspicious/noExplicitAny: the definition gives the types of parameters and result.
  func(definition: string): (...args: any[]) => any;
}

/** The part of koffi that is used. Its own types are missing when it is not installed. */
export interface Koffi {
  /** Loads a library by name; `null` is the process itself with its loaded libraries. */
  load(name: string | null): NativeLibrary;
  errno(): number;
  config(): { readonly async_stack_size: number };
  config(settings: { async_stack_size: number }): unknown;
  /** Describes the type of a function. */
  proto(result: string, parameters: readonly string[]): object;
  /** Reads memory: a function, a text, or `length` values. */
  decode(address: bigint, type: object | string, length?: number): unknown;
  /** Address of an array's memory. */
  address(array: ArrayBufferView): bigint;
}

/**
 * Stack of asynchronous calls in bytes: what a thread normally has. koffi gives them 128 kB. Only pages that a call
 * touches take memory.
 */
export const ASYNC_STACK_BYTES = 8 * 1024 * 1024;

let loaded: Koffi | undefined;

/**
 * Loads koffi, with enough stack for asynchronous calls unless the program has loaded a library with it before.
 *
 * @throws the error of `require` when koffi is not installed
 */
export function requireKoffi(): Koffi {
  if (loaded !== undefined) return loaded;
  const koffi = unbundledRequire(import.meta.url)("koffi") as Koffi;
  try {
    koffi.config({ async_stack_size: ASYNC_STACK_BYTES });
  } catch {
    // Its settings are fixed once a library is loaded. Users of asynchronous calls read them.
  }
  loaded = koffi;
  return koffi;
}
