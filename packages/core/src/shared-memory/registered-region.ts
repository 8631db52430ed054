import { TritonError } from "@tritonjs/protocol";
import type { RegionUsers } from "./region-users.js";
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
  readonly #object: SharedObject;
  readonly #users: RegionUsers;

  constructor(
    readonly status: RegisteredSystemRegion,
    object: SharedObject,
    users: RegionUsers,
  ) {
    this.#object = object;
    this.#users = users;
  }

  /** Counts a request that uses the region. Returns false if the region is closed. */
  use(): boolean {
    return this.#users.add();
  }

  /** Returns true if the region was unregistered and this was its last request. */
  endUse(): boolean {
    return this.#users.remove();
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

  /** Closes the object. Returns false while requests use the region. */
  close(): boolean {
    const closed = this.#users.close();
    if (closed) this.#object.close();
    return closed;
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
