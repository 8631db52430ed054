import { promisify } from "node:util";
import { deflate as deflateCallback, gzip as gzipCallback } from "node:zlib";
import { errorFor, type TritonError } from "@tritonjs/protocol";
import { Exchange, type InferenceResponse } from "@tritonjs/server";
import {
  forwardHeaders,
  freeWhenUsed,
  LOAD_REPORT_FORMAT_HEADER,
  LOAD_REPORT_HEADER,
  readCallerHeaders,
  UnpackFault,
  writeLoadReport,
} from "@tritonjs/server/internal";
import { LONG_DOCUMENT_BYTES, loopTurns, readJson } from "../exchange/loop-turns.js";
import { ClientGone, firstHeader, headerEntries } from "../exchange/request.js";
import { faultResponse, type V2Response } from "../exchange/response.js";
import {
  type DecodedRequest,
  decodeInferJson,
  decodeInferRequest,
  decodeRawRequest,
  inferenceHeaderLength,
} from "../infer/infer-request.js";
import {
  type EncodedResponse,
  encodeInferResponse,
  encodeSteps,
  isLongAnswer,
} from "../infer/infer-response.js";
import type { JsonValue } from "../json/json-value.js";
import { BODY_ALLOWANCE, InputTooLarge, maxNumbers } from "../limits.js";
import { type HttpExchange, modelRoutePath, postRoute, type Route, traceReceived } from "./route.js";

export const inferRoute: Route = postRoute(
  modelRoutePath("infer"),
  "inference",
  reportingLoad(infer),
  "text/plain",
);

/** Text of the refusal of a decoupled model. */
const DECOUPLED = { unaryOnly: "HTTP end point doesn't support models with decoupled transaction policy" };

/**
 * Errors before the request is read, errors of the model and errors of encoding the answer are `text/plain`. Errors of
 * reading and checking the request are `application/json`.
 */
async function infer(exchange: HttpExchange): Promise<V2Response> {
  const { service, request, model, version, memory, maxInputSize } = exchange;
  const call = new Exchange(service, request, service.model(model, version), version, DECOUPLED);
  const contentEncoding = firstHeader(request, "content-encoding");
  const encoding = contentEncoding === undefined ? "identity" : requestEncoding(contentEncoding);
  if (encoding === undefined) {
    return faultResponse(501, "Unsupported compression type", "text/plain", {
      "accept-encoding": "gzip, deflate",
    });
  }
  const turn = turnAtFullQueue(exchange, call);
  if (turn !== undefined) await turn;
  const since = service.tracing?.now();
  const lengthHeader = firstHeader(request, "inference-header-content-length");
  const tensorsAt = lengthHeader === undefined ? -1 : Number.parseInt(lengthHeader, 10);
  let body = await request.readBody(memory, maxInputSize, tensorsAt >= 0 ? tensorsAt : undefined);
  if (encoding !== "identity") {
    body = await decompress(exchange, body, encoding, maxInputSize + BODY_ALLOWANCE);
  }
  if (since !== undefined) traceReceived(exchange, since);
  const headerLength = inferenceHeaderLength(lengthHeader, body.length);
  exchange.errorType = "application/json";
  try {
    let decoded: DecodedRequest;
    let response: InferenceResponse;
    if (headerLength < LONG_DOCUMENT_BYTES) {
      decoded =
        headerLength === 0
          ? decodeRawRequest(call.current(), body, maxInputSize)
          : decodeInferRequest(call.current(), body, headerLength, maxInputSize, call);
      if (request.ownsBody === true) decoded.onInputsUsed = freeWhenUsed(body);
      response = await send(exchange, call, decoded);
    } else [decoded, response] = await sendLongDocument(exchange, call, body, headerLength);
    const encoded = isLongAnswer(response, decoded.outputs)
      ? await loopTurns.write(request, () =>
          encodeSteps(call.model, response, decoded.outputs, exchange.labels),
        )
      : encodeInferResponse(call.model, response, decoded.outputs, exchange.labels);
    return inferResponse(encoded, firstHeader(request, "accept-encoding"));
  } finally {
    if (call.answered) exchange.errorType = "text/plain";
    call.release();
  }
}

/** Decodes and sends a request with long JSON in turns of the event loop. */
async function sendLongDocument(
  exchange: HttpExchange,
  call: Exchange,
  body: Uint8Array,
  headerLength: number,
): Promise<[DecodedRequest, InferenceResponse]> {
  const { request, maxInputSize } = exchange;
  let decoded!: DecodedRequest;
  const use = (json: JsonValue): Promise<InferenceResponse> => {
    decoded = decodeInferJson(call.current(), json, body, headerLength, maxInputSize, call);
    if (headerLength === body.length) replaceBody(exchange, decoded, body);
    else if (request.ownsBody === true) decoded.onInputsUsed = freeWhenUsed(body);
    return send(exchange, call, decoded);
  };
  const response = await readJson(request, body.subarray(0, headerLength), use, maxNumbers(maxInputSize));
  return [decoded, response];
}

function send(exchange: HttpExchange, call: Exchange, decoded: DecodedRequest): Promise<InferenceResponse> {
  const { request, forwardedHeaders } = exchange;
  if (forwardedHeaders !== undefined) {
    decoded.parameters = forwardHeaders(headerEntries(request), forwardedHeaders, decoded.parameters);
  }
  call.trace = exchange.trace;
  decoded.trace = exchange.trace?.request;
  readCallerHeaders(decoded, call.model.reads, request, firstHeader);
  return call.single(decoded);
}

/**
 * Counts tensors that were made of long JSON instead of the JSON, which nothing needs any more.
 *
 * @throws TritonError UNAVAILABLE when the tensors do not fit into the memory of requests.
 */
function replaceBody({ request, memory }: HttpExchange, { inputs }: DecodedRequest, body: Uint8Array): void {
  let bytes = 0;
  for (const { byteLength } of inputs.values()) bytes += byteLength;
  memory.take(bytes);
  const free = request.ownsBody === true ? freeWhenUsed(body) : undefined;
  if (free === undefined) return;
  memory.give(body.length);
  free(undefined);
}

/** The answer to an inference, compressed if the client prefers that. The header length counts uncompressed bytes. */
function inferResponse(
  { json, tensors }: EncodedResponse,
  acceptEncoding: string | undefined,
): V2Response | Promise<V2Response> {
  const headers: Record<string, string> = {
    "content-type": tensors.length > 0 ? "application/octet-stream" : "application/json",
  };
  if (tensors.length > 0) headers["inference-header-content-length"] = String(json.length);
  const pieces = [json, ...tensors];
  const encoding = acceptEncoding === undefined ? "identity" : responseEncoding(acceptEncoding);
  if (encoding === "identity") return { status: 200, headers, body: tensors.length === 0 ? json : pieces };
  headers["content-encoding"] = encoding;
  const compress = encoding === "gzip" ? gzip : deflate;
  return compress(Buffer.concat(pieces)).then((body) => ({ status: 200, headers, body }));
}

/**
 * Waits for the turn of a refusal while the model's queue is full, before the body is read: its content cannot matter.
 * A refusal is `application/json`.
 */
export function turnAtFullQueue(exchange: HttpExchange, call: Exchange): Promise<void> | undefined {
  const turn = call.turn("");
  return turn?.catch((refusal) => {
    exchange.errorType = "application/json";
    throw refusal;
  });
}

/**
 * A handler of an inference route that adds the load of the model to its answers for clients that ask for it. The load
 * is the one at the start of the answer.
 */
export function reportingLoad(handle: Route["handle"]): Route["handle"] {
  return (exchange) => {
    const format = firstHeader(exchange.request, LOAD_REPORT_FORMAT_HEADER);
    return format === undefined ? handle(exchange) : withReport(exchange, format, handle);
  };
}

async function withReport(
  exchange: HttpExchange,
  format: string,
  handle: Route["handle"],
): Promise<V2Response> {
  const response = await handle(exchange);
  const { service, model, version } = exchange;
  const report = await service.loadReport?.(model, version).catch(() => undefined);
  const text = report && writeLoadReport(report, format);
  if (text === undefined) return response;
  return { ...response, headers: { ...response.headers, [LOAD_REPORT_HEADER]: text } };
}

const FIXED_LENGTH = 10;
const FLAGS_AT = 3;
const HAS_CHECKSUM = 0x02;
const HAS_EXTRA = 0x04;
const HAS_NAME = 0x08;
const HAS_COMMENT = 0x10;

/** How a body may be compressed. */
type ContentEncoding = "identity" | "gzip" | "deflate";

/** The compression that `Content-Encoding` names; undefined for any but gzip and deflate. */
function requestEncoding(header: string): ContentEncoding | undefined {
  if (header === "" || header === "identity") return "identity";
  return header === "gzip" || header === "deflate" ? header : undefined;
}

/**
 * Decompresses a request body. The body itself shows whether it is gzip or deflate. Bytes after the compressed data are
 * ignored.
 *
 * @throws TritonError INVALID_ARG for an empty or broken body, and for one that becomes larger than `maxBytes` or too
 * large for its compressed size; UNAVAILABLE when the memory or the decompression queue is full; ClientGone when the
 * client leaves.
 */
async function decompress(
  { service, request, memory }: HttpExchange,
  body: Uint8Array,
  encoding: Exclude<ContentEncoding, "identity">,
  maxBytes: number,
): Promise<Uint8Array> {
  if (body.length === 0) throw errorFor("INVALID_BODY", "nothing to be decompressed");
  if (request.gone) throw new ClientGone();
  const headerSize = gzipDataStart(body);
  const gone = new AbortController();
  const stopWatching = request.onGone(() => gone.abort());
  const limits = { maxBytes, share: memory, signal: gone.signal };
  try {
    const { buffer, byteOffset, length } = await (headerSize === undefined
      ? service.requestMemory.unpack(body, "deflate", limits)
      : service.requestMemory.unpack(body.subarray(headerSize), "gzip-data", limits));
    memory.give(headerSize ?? 0);
    return new Uint8Array(buffer, byteOffset, length);
  } catch (cause) {
    if (gone.signal.aborted) throw new ClientGone(cause);
    throw cause instanceof UnpackFault ? toTritonError(cause, encoding, maxBytes) : cause;
  } finally {
    stopWatching();
  }
}

function toTritonError(fault: UnpackFault, encoding: string, maxBytes: number): TritonError {
  switch (fault.kind) {
    case "SIZE":
      return new InputTooLarge(
        `Decompressed data size exceeds the maximum allowed value of ${maxBytes} bytes`,
        fault,
      );
    case "RATIO":
      return errorFor("INVALID_BODY", fault.message, { cause: fault });
    case "DATA":
      return errorFor("INVALID_BODY", `request body is not valid ${encoding} data`, { cause: fault });
  }
}

/**
 * Offset of the compressed data in a gzip member (RFC 1952); undefined for other formats. Node's own gunzip rejects a
 * body with bytes after its last member. Triton accepts it.
 */
function gzipDataStart(bytes: Uint8Array): number | undefined {
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return undefined;
  const flags = bytes[FLAGS_AT] ?? 0;
  let at = FIXED_LENGTH;
  if (flags & HAS_EXTRA) at += 2 + (bytes[at] ?? 0) + ((bytes[at + 1] ?? 0) << 8);
  if (flags & HAS_NAME) at = afterNul(bytes, at);
  if (flags & HAS_COMMENT) at = afterNul(bytes, at);
  if (flags & HAS_CHECKSUM) at += 2;
  return at;
}

function afterNul(bytes: Uint8Array, at: number): number {
  const nul = bytes.indexOf(0, at);
  return nul < 0 ? bytes.length : nul + 1;
}

const gzip = promisify(gzipCallback);
const deflate = promisify(deflateCallback);

/**
 * The encoding with the greatest weight in `Accept-Encoding`, the first of equals. Encodings other than identity, gzip
 * and deflate are ignored, as are weights that are not numbers.
 */
function responseEncoding(header: string): ContentEncoding {
  let best: ContentEncoding = "identity";
  let bestWeight = 0;
  for (const item of header.split(",")) {
    const [, name, weightText] = /^ *(.*?)(?:;q=(.*))?$/s.exec(item)!;
    const weight = weightText === undefined ? 1 : Number.parseFloat(weightText);
    if ((name === "identity" || name === "gzip" || name === "deflate") && weight > bestWeight) {
      best = name;
      bestWeight = weight;
    }
  }
  return best;
}
