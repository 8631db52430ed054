import { TREE_KERNEL } from "./kernel-bytes.js";

/** The part of the global that is used here: the types of Node do not have it. */
declare const WebAssembly: {
  readonly Memory: new (limits: { initial: number; maximum: number; shared: true }) => ForestMemory;
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object, imports: object) => { readonly exports: unknown };
};

/** A memory of WebAssembly, which threads share. Growing it keeps all views valid. */
export interface ForestMemory {
  readonly buffer: SharedArrayBuffer;
  /** Adds pages, and returns the number of pages before. */
  grow(pages: number): number;
}

/** Functions of the kernel. Addresses are those of its memory. */
export interface Kernel {
  /** Adds the leaves of all trees to the sums of rows, a multiple of eight. */
  addRows(keysAt: number, sumsAt: number, rows: number): void;
  addRow(keysAt: number, sumsAt: number): void;
}

const PAGE_BYTES = 2 ** 16;

/** Memory of WebAssembly has at most 4 GiB. */
const MAX_PAGES = 2 ** 16;

export function newMemory(bytes: number): ForestMemory {
  return new WebAssembly.Memory({ initial: pages(bytes), maximum: MAX_PAGES, shared: true });
}

/** Adds memory, and returns its address. */
export function addMemory(memory: ForestMemory, bytes: number): number {
  return memory.grow(pages(bytes)) * PAGE_BYTES;
}

function pages(bytes: number): number {
  return Math.ceil(bytes / PAGE_BYTES);
}

let compiled: object | undefined;

/** The kernel in a memory. It has less than 4 KB, so browsers compile it on their main thread. */
export function kernelOf(memory: ForestMemory): Kernel {
  compiled ??= new WebAssembly.Module(Uint8Array.from(atob(TREE_KERNEL), (byte) => byte.charCodeAt(0)));
  return new WebAssembly.Instance(compiled, { env: { memory } }).exports as Kernel;
}
