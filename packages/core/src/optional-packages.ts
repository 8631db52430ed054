import { errorFor, TritonError } from "@tritonjs/protocol";
import { createRequire, join, pathToFileURL } from "#host";

/*
 * Modules that bundlers of applications leave alone: packages that an application installs if it needs them, and
 * modules of users. A bundler that followed these imports would fail where the package is not installed. So the names
 * are not literals, and the comments address bundlers.
 */

/** Imports a module by its URL or the name of its package. */
export function importUnbundled<T>(specifier: string): Promise<T> {
  return import(/* webpackIgnore: true */ /* turbopackIgnore: true */ /* @vite-ignore */ specifier);
}

/** Returns the `require` of a module, given its URL. */
export function unbundledRequire(url: string): NodeJS.Require {
  return createRequire(url);
}

/**
 * Imports a package that may be installed: as the importer resolves it, or else as the program does. Undefined if
 * neither finds it.
 *
 * @param importer URL of a module
 */
export async function importInstalled<M>(
  name: string,
  importer: string = import.meta.url,
): Promise<M | undefined> {
  const found = findInstalled(name, importer);
  return found === undefined ? undefined : importUnbundled(pathToFileURL(found).href);
}

/** Finds the file of a package that may be installed, as {@link importInstalled} does. */
export function findInstalled(name: string, importer: string): string | undefined {
  const program = process.argv[1] === undefined ? [] : [pathToFileURL(process.argv[1]).href];
  const places = [importer, ...program, pathToFileURL(join(process.cwd(), "package.json")).href];
  for (const from of places) {
    try {
      return unbundledRequire(from).resolve(name);
    } catch {
      // Another place may have it.
    }
  }
  return undefined;
}

/**
 * Imports an optional peer of a package.
 *
 * @param from `import.meta.url` of a module of the package
 * @throws the error of `import` if it is not installed
 */
export async function importPeer<M>(name: string, from: string): Promise<M> {
  return (await importInstalled<M>(name, from)) ?? importUnbundled<M>(name);
}

/** The error for a package that cannot be loaded. @param advice how to install it */
export function notLoaded(what: string, cause: unknown, advice: string): TritonError {
  const why = TritonError.from(cause).message.split("\n")[0];
  return errorFor("PACKAGE_NOT_INSTALLED", `cannot load ${what} (${why}): ${advice}`, { cause });
}

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
  // biome-ignore lint/suspicious/noExplicitAny: the types give those of parameters and result.
  func(name: string, result: string, parameters: readonly (string | object)[]): (...args: any[]) => any;
}

/** The part of koffi that is used. Its own types are missing when it is not installed. */
export interface Koffi {
  /** Loads a library by name; `null` is the process itself with its loaded libraries. */
  load(name: string | null, options?: { readonly global?: boolean }): NativeLibrary;
  errno(): number;
  config(): { readonly async_stack_size: number };
  config(settings: { async_stack_size: number }): unknown;
  /** Describes the type of a function. */
  proto(result: string, parameters: readonly string[]): object;
  /** Reads memory: a function, a text, or `length` values. */
  decode(address: bigint, type: object | string, length?: number): unknown;
  /** Address of an array's memory. */
  address(array: ArrayBufferView): bigint;
  /** Describes a structure that is passed by value. */
  struct(members: Readonly<Record<string, object | string>>): object;
  /** Describes an array inside of a structure. */
  array(type: string, length: number): object;
  /** Memory outside of JavaScript as an array buffer. It is not freed with it. */
  view(address: bigint, byteSize: number): ArrayBuffer;
}

/** Stack of asynchronous calls in bytes, as of a thread. koffi gives 128 kB. Only pages in use take memory. */
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
