import type { Compression } from "@tritonjs/client/http";
import { decompressBytes } from "../compression.js";
import { MESSAGE_HEAD_BYTES } from "./grpc-templates.js";

/** Takes messages out of the data of a gRPC call. */
export class MessageAssembler {
  #chunks: Buffer[] = [];
  #length = 0;

  /** Returns the messages that are complete, which own their bytes. */
  add(data: Buffer, encoding: string): Buffer[] {
    this.#chunks.push(Buffer.from(data));
    this.#length += data.length;
    const messages: Buffer[] = [];
    while (this.#length >= MESSAGE_HEAD_BYTES) {
      if (this.#chunks[0]!.length < MESSAGE_HEAD_BYTES) this.#join();
      const end = MESSAGE_HEAD_BYTES + this.#chunks[0]!.readUInt32BE(1);
      if (this.#length < end) break;
      this.#join();
      const bytes = this.#chunks[0]!;
      const message = bytes.subarray(MESSAGE_HEAD_BYTES, end);
      messages.push(bytes[0] === 1 ? decompressBytes(message, encoding as Compression) : message);
      this.#length -= end;
      this.#chunks = this.#length === 0 ? [] : [bytes.subarray(end)];
    }
    return messages;
  }

  #join(): void {
    if (this.#chunks.length > 1) this.#chunks = [Buffer.concat(this.#chunks)];
  }
}
