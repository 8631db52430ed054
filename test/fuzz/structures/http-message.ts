import { bytes } from "./bytes.js";
import { border, type MutationSource, pick, type Structure } from "./structure.js";

/** An HTTP/1 message in the parts that are changed. */
export interface HttpMessage {
  /** The request line. */
  start: string;
  /** Lines `name: value`. */
  headers: string[];
  body: Uint8Array;
}

/** Reads a message; everything may be missing. */
export function readHttpMessage(input: Uint8Array): HttpMessage {
  const all = Buffer.from(input);
  const end = all.indexOf("\r\n\r\n");
  const head = (end < 0 ? all : all.subarray(0, end)).toString("latin1");
  const [start = "", ...headers] = head.split("\r\n");
  return { start, headers, body: end < 0 ? Buffer.alloc(0) : all.subarray(end + 4) };
}

/** Writes a message; its parts may contain anything. */
export function writeHttpMessage({ start, headers, body }: HttpMessage): Buffer {
  return Buffer.concat([Buffer.from(`${[start, ...headers].join("\r\n")}\r\n\r\n`, "latin1"), body]);
}

/** A good message with a body, and the header that counts it. */
export function httpMessage(
  start: string,
  body: string | Uint8Array = "",
  headers: readonly string[] = [],
): Buffer {
  const content = Buffer.from(body);
  const lines = [...headers, ...(content.length > 0 ? [`content-length: ${content.length}`] : [])];
  return writeHttpMessage({ start: `${start} HTTP/1.1`, headers: lines, body: content });
}

/**
 * An HTTP/1 request. Mostly the header that counts the body fits the body.
 *
 * @param inner form of the body
 * @param lines headers that may be added
 */
export function httpStructure(inner: Structure, lines: readonly string[]): Structure {
  return {
    mutate(input, source) {
      const { random } = source;
      if (random.chance(0.1)) return bytes.mutate(input, source);
      const message = readHttpMessage(input);
      if (random.chance(0.55)) message.body = inner.mutate(message.body, within(source));
      else pick(random, CHANGES)(message, source, lines);
      if (random.chance(0.85)) count(message);
      return writeHttpMessage(message);
    },
  };
}

/** The parts of another message's body, for a change of a body. */
function within(source: MutationSource): MutationSource {
  return { random: source.random, other: readHttpMessage(source.other).body, token: source.token };
}

type Change = (message: HttpMessage, source: MutationSource, lines: readonly string[]) => void;

const CHANGES: readonly Change[] = [
  function addHeader({ headers }, { random }, lines) {
    if (lines.length > 0) headers.splice(random.below(headers.length + 1), 0, pick(random, lines));
  },
  function removeHeader({ headers }, { random }) {
    headers.splice(random.below(headers.length + 1), 1);
  },
  function repeatHeader({ headers }, { random }) {
    if (headers.length > 0) headers.push(pick(random, headers));
  },
  function changeHeader({ headers }, source) {
    if (headers.length === 0) return;
    const at = source.random.below(headers.length);
    headers[at] = latin1(bytes.mutate(Buffer.from(headers[at]!, "latin1"), source));
  },
  function setHeaderNumber({ headers }, { random }) {
    const at = random.below(headers.length + 1);
    if (headers[at] !== undefined) headers[at] = headers[at].replace(/\d+/, String(border(random)));
  },
  function takeStartOfOther(message, { other }) {
    message.start = readHttpMessage(other).start;
  },
  function changeStart(message, source) {
    message.start = latin1(bytes.mutate(Buffer.from(message.start, "latin1"), source));
  },
  function changeNameInPath(message, { random, token }) {
    const names = message.start.split("/");
    names[random.below(names.length)] = encodeURI(latin1(token()));
    message.start = names.join("/");
  },
  function setMethod(message, { random }) {
    const method = pick(random, [
      "GET",
      "POST",
      "HEAD",
      "PUT",
      "DELETE",
      "OPTIONS",
      "PATCH",
      "CONNECT",
      "TRACE",
    ]);
    message.start = message.start.replace(/^\S*/, method);
  },
  function sendInChunks(message, { random }) {
    const at = random.below(message.body.length + 1);
    const parts = [message.body.subarray(0, at), message.body.subarray(at)];
    message.headers = message.headers.filter((line) => !/^content-length/i.test(line));
    message.headers.push("transfer-encoding: chunked");
    const chunks = parts.filter(({ length }) => length > 0);
    const framed = chunks.flatMap((part) => [Buffer.from(`${part.length.toString(16)}\r\n`), part, CRLF]);
    message.body = Buffer.concat([...framed, Buffer.from("0\r\n\r\n")]);
  },
  function appendOther(message, { other }) {
    message.body = Buffer.concat([message.body, other]);
  },
];

const CRLF = Buffer.from("\r\n");

function count(message: HttpMessage): void {
  const at = message.headers.findIndex((line) => /^content-length:/i.test(line));
  if (at >= 0) message.headers[at] = `content-length: ${message.body.length}`;
}

const latin1 = (part: Uint8Array): string => Buffer.from(part).toString("latin1");
