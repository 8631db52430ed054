import { TritonError } from "@tritonjs/protocol";
import type { SharedObject } from "./shared-object.js";

/** The place of a tensor as a request gives it, in unsigned 64-bit numbers. */
export interface RequestedRange {
  /** Name of a registered region. */
  readonly region: string;
  /** Start of the tensor in the region, in bytes. */
  readonly offset: number | bigint;
  readonly byteSize: number | bigint;
}

/** A registered region as clients see it. */
export interface RegisteredSystemRegion {
  readonly name: string;
  /** Key of the shared memory object: `/my_region`. */
  readonly key: string;
  /** Start of the region in the object, in bytes. */
  readonly offset: number;
  readonly byteSize: number;
}

/** A part of a shared memory object that a client has registered, with a count of the requests that use it. */
export class RegisteredRegion {
  /** Set when a client unregisters the region while requests use it. */
  awaitingUnregister = false;
  #users = 0;
  readonly #object: SharedObject;

  constructor(
    readonly status: RegisteredSystemRegion,
    object: SharedObject,
  ) {
    this.#object = object;
  }

  get inUse(): boolean {
    return this.#users > 0;
  }

  use(): void {
    this.#users++;
  }

  endUse(): void {
    this.#users--;
  }

  /**
   * Copies a range of the region.
   *
   * @throws TritonError INVALID_ARG when the object has become too small, INTERNAL when there is no memory for the
   * copy.
   */
  read(offset: number, byteSize: number): Uint8Array {
    const bytes = this.#allocate(byteSize);
    if (!this.#object.read(this.status.offset + offset, bytes)) throw this.#outOfRange();
    return bytes;
  }

  /** @throws TritonError INVALID_ARG when the object has become too small for the bytes, or has no memory for them. */
  write(offset: number, bytes: Uint8Array): void {
    if (!this.#object.write(this.status.offset + offset, bytes)) throw this.#outOfRange();
  }

  close(): void {
    this.#object.close();
  }

  #allocate(byteSize: number): Uint8Array {
    try {
      return new Uint8Array(Buffer.allocUnsafeSlow(byteSize).buffer);
    } catch (cause) {
      const what = `${byteSize} bytes from shared memory region '${this.status.name}'`;
      throw new TritonError("INTERNAL", `unable to allocate memory for ${what}`, { cause });
    }
  }

  #outOfRange(): TritonError {
    return new TritonError(
      "INVALID_ARG",
      `Invalid offset + byte size for shared memory region: '${this.status.name}'`,
      { reason: "INVALID_REGION" },
    );
  }
}
