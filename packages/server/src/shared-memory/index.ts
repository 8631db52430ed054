import { ftruncateSync } from "node:fs";
import { constants } from "node:os";
import {
  type DataType,
  elementByteSize,
  elementCount,
  errorFor,
  type Shape,
  Tensor,
  TritonError,
} from "@tritonjs/protocol";
import { loadPosix, type Posix, type SharedObject, sharedObject } from "./shared-object.js";

/*
 * Shared memory objects for clients: `@tritonjs/server/shared-memory`.
 */

/** Options of creating a region. */
export interface CreateRegionOptions {
  /** Rejects a key whose object exists. By default the object is opened. @default false */
  readonly createOnly?: boolean;
}

/**
 * A shared memory object of this process, for tensors that a server on the same machine reads or writes without a
 * transfer. Contents are copied in and out. Destroy the object after use; otherwise the system keeps it.
 *
 * Needs the package `koffi`. Not available on Windows.
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
    /** Key of the object for servers: `/my_inputs`. */
    readonly key: string,
    readonly byteSize: number,
    posix: Posix,
    object: SharedObject,
  ) {
    this.#posix = posix;
    this.#object = object;
  }

  /**
   * Creates an object of `byteSize` zero bytes, or opens the object of that key.
   *
   * @throws TritonError INVALID_ARG for a size that is not a positive integer, ALREADY_EXISTS with `createOnly`,
   * INTERNAL when the system refuses, UNAVAILABLE without the package koffi, UNSUPPORTED on Windows.
   */
  static async create(
    key: string,
    byteSize: number,
    { createOnly = false }: CreateRegionOptions = {},
  ): Promise<SharedMemoryRegion> {
    if (!Number.isSafeInteger(byteSize) || byteSize <= 0) {
      throw errorFor(
        "INVALID_REGION",
        `unable to create the shared memory region '${key}' of ${byteSize} bytes`,
      );
    }
    const posix = await loadPosix();
    let descriptor = posix.create(key, true);
    const isNew = descriptor >= 0;
    const exists = !isNew && posix.errno() === constants.errno.EEXIST;
    if (exists && createOnly) {
      throw errorFor(
        "REGION_EXISTS",
        `unable to create the shared memory region '${key}': it already exists`,
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
   * Writes bytes, the elements of a typed array, or a tensor in its form on the wire.
   *
   * @param offset in bytes
   * @throws TritonError INVALID_ARG for data that does not fit, UNAVAILABLE after {@link destroy}.
   */
  write(data: ArrayBufferView | Tensor, offset = 0): void {
    const bytes =
      data instanceof Tensor ? data.bytes : new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    this.#check(offset, bytes.byteLength);
    if (!this.#open().write(offset, bytes)) throw this.#outside(offset, bytes.byteLength);
  }

  /**
   * Copies some of the bytes.
   *
   * @param byteSize all bytes after `offset` by default
   * @throws TritonError INVALID_ARG for a range outside the object, UNAVAILABLE after {@link destroy}.
   */
  read(offset = 0, byteSize = this.byteSize - offset): Uint8Array {
    this.#check(offset, byteSize);
    const bytes = new Uint8Array(byteSize);
    if (!this.#open().read(offset, bytes)) throw this.#outside(offset, byteSize);
    return bytes;
  }

  /**
   * Copies a tensor that a server has written.
   *
   * @param offset in bytes
   * @throws TritonError INVALID_ARG for a range outside the object and for `BYTES` that end inside an element.
   */
  tensor(datatype: DataType, shape: Shape, offset = 0): Tensor {
    const count = elementCount(shape);
    if (datatype !== "BYTES") {
      return Tensor.fromBytes(datatype, shape, this.read(offset, count * elementByteSize(datatype)));
    }
    const rest = this.read(offset);
    const end = endOfStrings(rest, count);
    if (end === undefined) {
      throw errorFor(
        "INVALID_REGION",
        `shared memory region '${this.key}': expected ${count} BYTES elements, got fewer`,
      );
    }
    return Tensor.fromBytes(datatype, shape, rest.subarray(0, end));
  }

  /** Closes the object and removes its name. A server that has it open keeps it. Calling it twice is harmless. */
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
    throw errorFor(
      "REGION_DESTROYED",
      `cannot use the shared memory region '${this.key}': it has been destroyed`,
    );
  }

  #check(offset: number, byteSize: number): void {
    const whole = Number.isSafeInteger(offset) && Number.isSafeInteger(byteSize);
    if (!whole || offset < 0 || byteSize < 0 || byteSize > this.byteSize - offset) {
      throw this.#outside(offset, byteSize);
    }
  }

  #outside(offset: number, byteSize: number): TritonError {
    return errorFor(
      "INVALID_REGION",
      `shared memory region '${this.key}': expected at most ${this.byteSize} bytes, got ${byteSize} bytes at offset ${offset}`,
    );
  }
}

/** End of the first `count` serialized elements; undefined when the bytes end before. */
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
