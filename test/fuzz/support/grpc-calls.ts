import { type ClientHttp2Session, connect } from "node:http2";
import { framedMessage } from "../structures/http2-frames.js";

/** How a call ended. */
export interface GrpcAnswer {
  /** Status of gRPC; undefined for a stream that was reset or an answer without one. */
  readonly status: number | undefined;
  readonly message: string;
  readonly httpStatus: number | undefined;
  /** Messages of the answer, as they were framed. */
  readonly messages: readonly Buffer[];
  readonly resetCode: number;
}

/** Calls of one server on bare HTTP/2 streams. A connection that the server ends is opened again. */
export class GrpcCalls {
  readonly #url: string;
  #session: ClientHttp2Session | undefined;

  constructor(port: number) {
    this.#url = `http://127.0.0.1:${port}`;
  }

  /** @param body what is sent, framed or not */
  send(path: string, body: Uint8Array, headers: Readonly<Record<string, string>> = {}): Promise<GrpcAnswer> {
    return new Promise((resolve) => {
      const stream = this.#open().request({
        ":method": "POST",
        ":path": path,
        "content-type": "application/grpc",
        te: "trailers",
        ...headers,
      });
      const parts: Buffer[] = [];
      let answer: Record<string, unknown> = {};
      stream.on("response", (received) => {
        answer = { ...received };
      });
      stream.on("trailers", (received) => {
        answer = { ...answer, ...received };
      });
      stream.on("data", (part: Buffer) => void parts.push(part));
      stream.on("error", () => {});
      stream.once("close", () => {
        const status = answer["grpc-status"];
        resolve({
          status: status === undefined ? undefined : Number(status),
          message: decode(String(answer["grpc-message"] ?? "")),
          httpStatus: answer[":status"] as number | undefined,
          messages: messagesOf(Buffer.concat(parts)),
          resetCode: stream.rstCode,
        });
      });
      stream.end(body);
    });
  }

  /** Calls a method with one message. */
  call(path: string, message: Uint8Array): Promise<GrpcAnswer> {
    return this.send(path, framedMessage(message));
  }

  close(): void {
    this.#session?.destroy();
  }

  #open(): ClientHttp2Session {
    if (this.#session === undefined || this.#session.closed || this.#session.destroyed) {
      const session = connect(this.#url);
      session.on("error", () => {});
      session.on("goaway", () => {
        if (this.#session === session) this.#session = undefined;
        session.close();
      });
      this.#session = session;
    }
    return this.#session;
  }
}

function messagesOf(body: Buffer): Buffer[] {
  const messages: Buffer[] = [];
  for (let at = 0; at < body.length; ) {
    if (body.length - at < 5) throw new Error(`expected a message, got ${body.length - at} bytes`);
    const end = at + 5 + body.readUInt32BE(at + 1);
    if (end > body.length)
      throw new Error(`expected ${end - at} bytes of a message, got ${body.length - at}`);
    messages.push(body.subarray(at + 5, end));
    at = end;
  }
  return messages;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
