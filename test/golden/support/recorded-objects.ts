import { randomUUID } from "node:crypto";
import { SharedMemoryRegion } from "@tritonjs/server/shared-memory";

/** Keys of the recorded objects begin with this. */
const RECORDED_PREFIX = "golden_";

/**
 * The shared memory objects of the recorded clients. Theirs had fixed keys. These have keys of this run, which are
 * inserted into requests and removed from answers.
 */
export class RecordedObjects {
  readonly #prefix = `${RECORDED_PREFIX}${randomUUID().slice(0, 8)}_`;
  readonly #objects = new Map<string, SharedMemoryRegion>();

  /** Creates an object, or fills an existing one. */
  async put(key: string, contents: Uint8Array): Promise<void> {
    const object =
      this.#objects.get(key) ?? (await SharedMemoryRegion.create(this.toSend(key), contents.byteLength));
    this.#objects.set(key, object);
    object.write(contents);
  }

  /** Current contents of an object. */
  read(key: string): Uint8Array | undefined {
    return this.#objects.get(key)?.read();
  }

  /** A text as it is sent. */
  toSend(text: string): string {
    return text.replaceAll(RECORDED_PREFIX, this.#prefix);
  }

  /** A text as it would have been recorded. */
  asRecorded(text: string): string {
    return text.replaceAll(this.#prefix, RECORDED_PREFIX);
  }

  destroy(): void {
    for (const object of this.#objects.values()) object.destroy();
    this.#objects.clear();
  }
}

/** `count` numbers from `first` on. */
export function int32s(first: number, count: number): Uint8Array {
  return new Uint8Array(Int32Array.from({ length: count }, (_, index) => first + index).buffer);
}
