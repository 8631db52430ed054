import { ftruncateSync } from "node:fs";
import { constants } from "node:os";
import {
  type DataType,
  elementByteSize,
  elementCount,
  type Shape,
  Tensor,
  TritonError,
} from "@tritonjs/protocol";

import { loadPosix, type Posix } from "./posix.js";
import { type SharedObject, sharedObject } from "./shared-object.js";

/** How a region is made. */
export interface CreateRegionOptions {
  /** Refuses a key for which there is an object already; it is opened otherwise. @default false */
  readonly createOnly?: boolean;
}

/**
 * A shared memory object of this process's own, for tensors that a server on the same machine is to read or write
 * without sending them. Contents are copied in and out. It must be destroyed: the system keeps it otherwise.
 *
 * Needs the package `koffi`; there are none on Windows.
 *
 * @example
 * ```ts
 * const region = await SharedMemoryRegion.create("/my_inputs", 64);
 * region.write(Float32Array.of(1, 2, 3));
 * await client.registerSystemSharedMemory("inputs", region);
 * await client.infer("model", {
 *   inputs: { x: { datatype: "FP32", shape: [3], sharedMemory: { region: "inputs", byteSize: 12 } } },
 * });
 * await client.unregisterSystemSharedMemory("inputs");
 * region.destroy();
 * ```
 */
export class SharedMemoryRegion implements Disposable {
  readonly #posix: Posix;
  #object: SharedObject | undefined;

  private constructor(
    /** Of the object, as servers are told: `/my_inputs`. */
    readonly key: string,
    readonly byteSize: number,
    posix: Posix,
    object: SharedObject,
  ) {
    this.#posix = posix;
    this.#object = object;
  }

  /**
   * Makes an object of `byteSize` bytes, all zero, or opens the one of that key.
   *
   * @throws TritonError INVALID_ARG for a size that is no positive integer, ALREADY_EXISTS with `createOnly`, INTERNAL
   * when the system refuses, UNAVAILABLE without the package koffi, UNSUPPORTED on Windows.
   */
  static async create(
    key: string,
    byteSize: number,
    { createOnly = false }: CreateRegionOptions = {},
  ): Promise<SharedMemoryRegion> {
    if (!Number.isSafeInteger(byteSize) || byteSize <= 0) {
      throw new TritonError(
        "INVALID_ARG",
        `unable to create the shared memory region '${key}' of ${byteSize} bytes`,
        { reason: "INVALID_REGION" },
      );
    }
    const posix = await loadPosix();
    let descriptor = posix.create(key, true);
    const isNew = descriptor >= 0;
    const exists = !isNew && posix.errno() === constants.errno.EEXIST;
    if (exists && createOnly) {
      throw new TritonError(
        "ALREADY_EXISTS",
        `unable to create the shared memory region '${key}': it already exists`,
        { reason: "REGION_EXISTS" },
      );
    }
    if (exists) descriptor = posix.create(key, false);
    if (descriptor < 0)
      throw new TritonError("INTERNAL", `unable to create the shared memory region '${key}'`);
    const object = sharedObject(posix, descriptor);
    try {
      if (object.byteSize() < byteSize) ftruncateSync(descriptor, byteSize);
    } catch (cause) {
      object.close();
      if (isNew) posix.unlink(key);
      throw new TritonError(
        "INTERNAL",
        `unable to resize the shared memory region '${key}' to ${byteSize} bytes`,
        {
          cause,
        },
      );
    }
    return new SharedMemoryRegion(key, byteSize, posix, object);
  }

  /**
   * Writes bytes, the elements of a typed array, or a tensor as it goes over the wire.
   *
   * @param offset in bytes
   * @throws TritonError INVALID_ARG for what does not fit, UNAVAILABLE after {@link destroy}.
   */
  write(data: ArrayBufferView | Tensor, offset = 0): void {
    const bytes =
      data instanceof Tensor ? data.bytes : new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    this.#check(offset, bytes.byteLength);
    if (!this.#open().write(offset, bytes)) throw this.#outside(offset, bytes.byteLength);
  }

  /**
   * A copy of some of the bytes.
   *
   * @param byteSize all that follow `offset` unless given
   * @throws TritonError INVALID_ARG for what lies outside, UNAVAILABLE after {@link destroy}.
   */
  read(offset = 0, byteSize = this.byteSize - offset): Uint8Array {
    this.#check(offset, byteSize);
    const bytes = new Uint8Array(byteSize);
    if (!this.#open().read(offset, bytes)) throw this.#outside(offset, byteSize);
    return bytes;
  }

  /**
   * A copy of a tensor that a server has written.
   *
   * @param offset in bytes
   * @throws TritonError INVALID_ARG for what lies outside and for `BYTES` that end inside an element.
   */
  tensor(datatype: DataType, shape: Shape, offset = 0): Tensor {
    const count = elementCount(shape);
    if (datatype !== "BYTES") {
      return Tensor.fromBytes(datatype, shape, this.read(offset, count * elementByteSize(datatype)));
    }
    const rest = this.read(offset);
    const end = endOfStrings(rest, count);
    if (end === undefined) {
      throw new TritonError(
        "INVALID_ARG",
        `shared memory region '${this.key}': expected ${count} BYTES elements, got fewer`,
        { reason: "INVALID_REGION" },
      );
    }
    return Tensor.fromBytes(datatype, shape, rest.subarray(0, end));
  }

  /** Closes the object and takes its name away: who has it open keeps it. Calling it twice is harmless. */
  destroy(): void {
    if (this.#object === undefined) return;
    this.#object.close();
    this.#object = undefined;
    this.#posix.unlink(this.key);
  }

  [Symbol.dispose](): void {
    this.destroy();
  }

  #open(): SharedObject {
    if (this.#object !== undefined) return this.#object;
    throw new TritonError(
      "UNAVAILABLE",
      `cannot use the shared memory region '${this.key}': it has been destroyed`,
      {
        reason: "REGION_DESTROYED",
      },
    );
  }

  #check(offset: number, byteSize: number): void {
    const whole = Number.isSafeInteger(offset) && Number.isSafeInteger(byteSize);
    if (!whole || offset < 0 || byteSize < 0 || byteSize > this.byteSize - offset) {
      throw this.#outside(offset, byteSize);
    }
  }

  #outside(offset: number, byteSize: number): TritonError {
    return new TritonError(
      "INVALID_ARG",
      `shared memory region '${this.key}': expected at most ${this.byteSize} bytes, got ${byteSize} bytes at offset ${offset}`,
      { reason: "INVALID_REGION" },
    );
  }
}

/** Where that many serialized elements end; undefined when they do not end within the bytes. */
function endOfStrings(bytes: Uint8Array, count: number): number | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let end = 0;
  for (let element = 0; element < count; element++) {
    if (bytes.byteLength - end < 4) return undefined;
    end += 4 + view.getUint32(end, true);
    if (end > bytes.byteLength) return undefined;
  }
  return end;
}
