import { int32s, RecordedObjects } from "../recorded-objects.js";
import type { UnaryResult } from "./client.js";
import type { GrpcCase, JsonMessage } from "./grpc-case.js";

/** Sizes of the objects of the recorded gRPC client: the note of `shm-register-in`. */
const SIZES = { in: 64, out: 64, small: 32, big: 256, err: 64, page: 8192 };

/** The shared memory of the recorded gRPC client. It stays the same for all cases of a group. */
export class GrpcObjects {
  #objects: RecordedObjects | undefined;

  /** Plays a case with the recorded contents of the objects, and compares their contents afterwards. */
  async around(recorded: GrpcCase, play: (sent: GrpcCase) => Promise<string[]>): Promise<string[]> {
    if (!/shared-memory/.test(recorded.area)) return play(recorded);
    const objects = await this.#made();
    for (const { key, bytes = "" } of recorded.shm_before ?? []) {
      await objects.put(key, Buffer.from(bytes, "base64"));
    }
    const sent = parseWith(recorded, (text) => objects.toSend(text));
    const found = await play({ ...recorded, request: sent.request });
    for (const { key, bytes = "" } of recorded.shm_after ?? []) {
      const got = Buffer.from(objects.read(key) ?? []).toString("base64");
      if (got !== bytes) found.push(`shared memory ${key}: expected ${bytes}, got ${got}`);
    }
    return found;
  }

  /** An answer as it would have been recorded. */
  asRecorded(result: UnaryResult): UnaryResult {
    const objects = this.#objects;
    return objects === undefined ? result : parseWith(result, (text) => objects.asRecorded(text));
  }

  destroy(): void {
    this.#objects?.destroy();
  }

  async #made(): Promise<RecordedObjects> {
    if (this.#objects !== undefined) return this.#objects;
    this.#objects = new RecordedObjects();
    for (const [name, size] of Object.entries(SIZES)) {
      const page = Buffer.concat([Buffer.alloc(4096), int32s(0, 32)], size);
      await this.#objects.put(`/golden_${name}`, name === "page" ? page : new Uint8Array(size));
    }
    return this.#objects;
  }
}

/** A value with all of its texts changed. */
function parseWith<T extends JsonMessage | UnaryResult | GrpcCase>(
  value: T,
  change: (text: string) => string,
): T {
  return JSON.parse(change(JSON.stringify(value))) as T;
}
