import { constants, gunzipSync, inflateSync } from "node:zlib";
import { expectThat } from "../engine/target.js";
import type { HttpAnswer } from "./answers.js";

const HEAD_END = "\r\n\r\n";

/**
 * Reads the answers of a connection. The last one may be a stream that ends early: as Node and Triton do, the server
 * gives up what it still has to send when the client ends its half of the connection.
 *
 * @param sent what the client sent: an answer to HEAD has no body
 * @throws Error for bytes that are not answers of HTTP/1.1
 */
export function readHttpAnswers(received: Buffer, sent: Uint8Array): HttpAnswer[] {
  const mayHead = Buffer.from(sent).includes("HEAD");
  const answers: HttpAnswer[] = [];
  for (let at = 0; at < received.length; ) {
    const end = received.indexOf(HEAD_END, at);
    const head = received.subarray(at, end < 0 ? undefined : end).toString("latin1");
    const [start = "", ...lines] = head.split("\r\n");
    const status = /^HTTP\/1\.1 (\d{3}) /.exec(start)?.[1];
    expectThat(
      status !== undefined && end >= 0,
      () => `expected an answer, got ${JSON.stringify(head.slice(0, 200))}`,
    );
    const header = (name: string) =>
      lines.find((line) => line.toLowerCase().startsWith(`${name}: `))?.slice(name.length + 2);
    at = end + HEAD_END.length;
    if (status === "100") continue;
    const [body, next] = readBody(received, at, header, mayHead);
    at = next;
    // An answer to HEAD cannot be told from one whose body is empty.
    if (mayHead && body.length === 0) continue;
    const decoded = decode(body, header("content-encoding"));
    answers.push({ status: Number(status), contentType: header("content-type") ?? "", body: decoded });
  }
  return answers;
}

/** A body as it was before its compression. A stream that ended early has no whole one. */
function decode(body: Buffer, encoding: string | undefined): Buffer {
  const finishFlush = constants.Z_SYNC_FLUSH;
  if (encoding === "gzip") return gunzipSync(body, { finishFlush });
  return encoding === "deflate" ? inflateSync(body, { finishFlush }) : body;
}

function readBody(
  received: Buffer,
  start: number,
  header: (name: string) => string | undefined,
  mayHead: boolean,
): [body: Buffer, next: number] {
  const isOver =
    start === received.length || received.subarray(start, start + 9).equals(Buffer.from("HTTP/1.1 "));
  if (mayHead && isOver) return [Buffer.alloc(0), start];
  if (header("transfer-encoding") === "chunked") return readChunks(received, start);
  const length = header("content-length");
  const end = length === undefined ? received.length : start + Number(length);
  expectThat(
    end <= received.length,
    () => `expected ${length} bytes of body, got ${received.length - start}`,
  );
  return [received.subarray(start, end), end];
}

function readChunks(received: Buffer, start: number): [body: Buffer, next: number] {
  const parts: Buffer[] = [];
  for (let at = start; ; ) {
    if (at === received.length) return [Buffer.concat(parts), at];
    const end = received.indexOf("\r\n", at);
    const size = Number.parseInt(received.subarray(at, Math.max(at, end)).toString("latin1"), 16);
    expectThat(end >= 0 && size >= 0, () => `expected a chunk, got ${received.subarray(at, at + 40)}`);
    at = end + 2 + size + 2;
    expectThat(at <= received.length, () => `expected a chunk of ${size} bytes, got less`);
    if (size === 0) return [Buffer.concat(parts), at];
    parts.push(received.subarray(end + 2, end + 2 + size));
  }
}
