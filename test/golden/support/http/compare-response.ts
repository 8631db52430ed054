import { isUtf8 } from "node:buffer";
import { compareValues, show } from "../compare-values.js";
import { type JsonValue, parseJson, toJsonValue } from "../json-value.js";
import { type RecordedResponse, responseBody } from "./http-case.js";
import type { HttpResponse } from "./parse-response.js";

const HEADER_LENGTH = "inference-header-content-length";

/** Headers that change how a client reads the body: none may appear that the recording lacks. */
const TELLING_HEADERS = [HEADER_LENGTH, "content-encoding", "transfer-encoding"];

/** Changes to bodies before they are compared. */
export interface Arrangement {
  expected(body: JsonValue): JsonValue;
  got(body: JsonValue): JsonValue;
  /** After the other two. */
  both(body: JsonValue): JsonValue;
}

/** Lists how an answer differs from the recorded one. */
export function compareResponse(
  expected: RecordedResponse,
  got: HttpResponse | undefined,
  arrange: Arrangement,
): string[] {
  if (got === undefined) return [`no answer, expected status ${expected.status}`];
  if (got.fault !== undefined) return [got.fault];
  const status =
    expected.status === got.status ? [] : [`status: expected ${expected.status}, got ${got.status}`];
  return [...status, ...compareHeaders(expected, got), ...compareBody(expected, got, arrange)];
}

function compareHeaders(expected: RecordedResponse, got: HttpResponse): string[] {
  const differences: string[] = [];
  const recorded = new Map(
    Object.entries(expected.headers ?? {}).map(([name, value]) => [name.toLowerCase(), value]),
  );
  for (const [name, value] of recorded) {
    const other = got.headers.get(name);
    const same = name === HEADER_LENGTH ? isLength(other, got, expected) : other === value;
    if (!same) differences.push(`header ${name}: expected ${value}, got ${other ?? "none"}`);
  }
  for (const name of TELLING_HEADERS) {
    const value = got.headers.get(name);
    if (value !== undefined && !recorded.has(name))
      differences.push(`header ${name}: expected none, got ${value}`);
  }
  return differences;
}

/**
 * True for a length that matches the body: the recorded length for the recorded bytes. For other bodies the number
 * of JSON bytes depends on how numbers are written, and the body is split by it further down.
 */
function isLength(value: string | undefined, { body }: HttpResponse, expected: RecordedResponse): boolean {
  if (value === undefined || !/^\d+$/.test(value) || Number(value) > body.length) return false;
  const isRecorded = responseBody(expected)?.equals(body) ?? false;
  return !isRecorded || value === expected.headers?.["Inference-Header-Content-Length"];
}

function compareBody(expected: RecordedResponse, got: HttpResponse, arrange: Arrangement): string[] {
  if (expected.body_json_masked !== undefined) {
    return compareJson(toJsonValue(expected.body_json_masked), got.body, arrange);
  }
  const body = responseBody(expected);
  if (body === undefined || body.equals(got.body)) return [];
  if (expected.headers?.["Content-Type"]?.startsWith("text/event-stream")) {
    return compareEvents(body, got.body, arrange);
  }
  const recorded = split(body, expected.headers?.["Inference-Header-Content-Length"]);
  const answered = split(got.body, got.headers.get(HEADER_LENGTH));
  const tensors = recorded.binary.equals(answered.binary)
    ? []
    : [`binary data: expected ${recorded.binary.toString("hex")}, got ${answered.binary.toString("hex")}`];
  const value = tryParse(recorded.json);
  if (value !== undefined) return [...compareJson(value, answered.json, arrange), ...tensors];
  return [`body: expected ${show(body.toString())}, got ${show(got.body.toString())}`];
}

/** Compares the events of a stream one by one. */
function compareEvents(expected: Buffer, got: Buffer, arrange: Arrangement): string[] {
  const recorded = events(expected);
  const answered = events(got);
  if (recorded.length !== answered.length)
    return [`body: expected ${show(`${expected}`)}, got ${show(`${got}`)}`];
  return recorded.flatMap((event, i) => {
    const value = tryParse(event);
    return value === undefined
      ? [`event ${i} is not JSON`]
      : compareJson(value, answered[i] as Buffer, arrange);
  });
}

function events(body: Buffer): Buffer[] {
  const texts = body.toString("latin1").split("\n\n").slice(0, -1);
  return texts.map((text) => Buffer.from(text.replace(/^data: /, ""), "latin1"));
}

function compareJson(expected: JsonValue, json: Buffer, arrange: Arrangement): string[] {
  const got = tryParse(json);
  if (got === undefined) return [`body: expected ${show(expected)}, got ${show(json.toString())}`];
  return compareValues(arrange.both(arrange.expected(expected)), arrange.both(arrange.got(got)));
}

function split(body: Buffer, headerLength: string | undefined): { json: Buffer; binary: Buffer } {
  const at = headerLength === undefined ? body.length : Number(headerLength);
  return { json: body.subarray(0, at), binary: body.subarray(at) };
}

function tryParse(json: Buffer): JsonValue | undefined {
  try {
    return parseJson(json.toString(isUtf8(json) ? "utf8" : "latin1"));
  } catch {
    return undefined;
  }
}
