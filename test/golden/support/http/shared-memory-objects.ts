import { int32s, RecordedObjects } from "../recorded-objects.js";
import type { RecordedRequest } from "./http-case.js";
import type { HttpResponse } from "./parse-response.js";

/** The shared memory of the recorded HTTP client, as `setup` of the cases describes it. */
export class HttpObjects {
  readonly #objects = new RecordedObjects();

  async fill(): Promise<void> {
    const numbers = Buffer.concat([
      int32s(0, 16),
      new Uint8Array(Int32Array.from({ length: 16 }, () => 1).buffer),
    ]);
    await this.#objects.put("/golden_http_shm", Buffer.concat([numbers, Buffer.alloc(128)]));
    await this.#objects.put("/golden_http_shm_out", Buffer.alloc(256));
    const page = Buffer.concat([Buffer.alloc(4096), numbers], 8192);
    await this.#objects.put("/golden_http_shm_page", page);
  }

  toSend(request: RecordedRequest): RecordedRequest {
    const text = request.body_text;
    return text === undefined ? request : { ...request, body_text: this.#objects.toSend(text) };
  }

  asRecorded(response: HttpResponse | undefined): HttpResponse | undefined {
    if (response === undefined) return undefined;
    const body = Buffer.from(this.#objects.asRecorded(response.body.toString("latin1")), "latin1");
    return { ...response, body };
  }

  destroy(): void {
    this.#objects.destroy();
  }
}
