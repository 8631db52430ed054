import { type ClientHttp2Session, connect, constants, type OutgoingHttpHeaders } from "node:http2";
import { onTestFinished } from "vitest";

/** The answer to a call on a bare HTTP/2 stream. */
export interface RawAnswer {
  readonly httpStatus: number | undefined;
  readonly grpcStatus: number | undefined;
  readonly message: string | undefined;
  /** Code of the reset, 0 for none. */
  readonly reset: number;
}

/** A bare HTTP/2 connection that is closed at the end of the test. */
export function rawSession(url: string): ClientHttp2Session {
  const session = connect(`http://${url}`);
  session.on("error", () => {});
  onTestFinished(() => session.destroy());
  return session;
}

/** Sends bytes unchanged to a method. */
export function rawCall(
  session: ClientHttp2Session,
  body: Uint8Array,
  headers: OutgoingHttpHeaders = {},
): Promise<RawAnswer> {
  return new Promise((resolve) => {
    const stream = session.request({
      [constants.HTTP2_HEADER_METHOD]: "POST",
      [constants.HTTP2_HEADER_PATH]: "/inference.GRPCInferenceService/ModelInfer",
      "content-type": "application/grpc",
      te: "trailers",
      ...headers,
    });
    const got: OutgoingHttpHeaders = {};
    stream.on("response", (response) => void Object.assign(got, response));
    stream.on("trailers", (trailers) => void Object.assign(got, trailers));
    stream.on("error", () => {});
    stream.on("close", () => {
      const grpcStatus = got["grpc-status"];
      resolve({
        httpStatus: got[":status"] as number | undefined,
        grpcStatus: grpcStatus === undefined ? undefined : Number(grpcStatus),
        message: got["grpc-message"] as string | undefined,
        reset: stream.rstCode,
      });
    });
    stream.resume();
    stream.end(body);
  });
}

/** A message behind its frame header. */
export function framed(message: Uint8Array, compressed = 0): Buffer {
  const header = Buffer.alloc(5);
  header[0] = compressed;
  header.writeUInt32BE(message.length, 1);
  return Buffer.concat([header, message]);
}
