import { TritonError } from "@tritonjs/protocol";
import type { RegisteredRegion, RequestedRange } from "./registered-region.js";
import type { SharedMemory } from "./shared-memory.js";

/** A range of a region that a request holds. */
export class RegionRange {
  readonly #region: RegisteredRegion;
  readonly #offset: number;
  readonly #byteSize: number;

  constructor(region: RegisteredRegion, offset: number, byteSize: number) {
    this.#region = region;
    this.#offset = offset;
    this.#byteSize = byteSize;
  }

  /**
   * Copies the range, so that later changes by the client have no effect.
   *
   * @throws TritonError INVALID_ARG when the client has shrunk the memory object in the meantime.
   */
  read(): Uint8Array {
    return this.#region.read(this.#offset, this.#byteSize);
  }

  /**
   * Writes an output. The rest of the range stays unchanged.
   *
   * @throws TritonError INTERNAL for an output that is larger than the range, INVALID_ARG when the client has shrunk
   * the memory object in the meantime.
   */
  put(output: string, bytes: Uint8Array): void {
    if (bytes.byteLength > this.#byteSize) {
      throw new TritonError(
        "INTERNAL",
        `shared memory size specified with the request for output '${output}' (${this.#byteSize} bytes) should be ` +
          `at least ${bytes.byteLength} bytes to hold the results`,
      );
    }
    this.#region.write(this.#offset, bytes);
  }
}

/** The regions that one request uses. They stay until the request is done, even if they are unregistered before. */
export class RequestRegions {
  readonly #memory: SharedMemory;
  #held: RegisteredRegion[] | undefined;

  constructor(memory: SharedMemory) {
    this.#memory = memory;
  }

  /**
   * Holds the region of a tensor until {@link release}.
   *
   * @throws TritonError NOT_FOUND for an unknown region, INVALID_ARG for a range outside the region.
   */
  hold(range: RequestedRange): RegionRange {
    let found = this.#memory.find(range);
    // In a thread that does not own the region, it may be closed in between.
    while (!found.region.use()) found = this.#memory.find(range);
    this.#held ??= [];
    this.#held.push(found.region);
    return new RegionRange(found.region, found.offset, found.byteSize);
  }

  /** Releases the regions when the request is done. Calling it twice is harmless. */
  release(): void {
    const held = this.#held;
    if (held === undefined) return;
    this.#held = undefined;
    for (const region of held) if (region.endUse()) this.#memory.settle(region);
  }
}
