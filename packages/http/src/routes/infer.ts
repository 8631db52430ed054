import {
  Exchange,
  forwardHeaders,
  freeWhenUsed,
  type InferenceResponse,
  LOAD_REPORT_FORMAT_HEADER,
  LOAD_REPORT_HEADER,
  RequestRegions,
  writeLoadReport,
} from "@tritonjs/core/frontend";
import { LONG_DOCUMENT_BYTES, loopTurns, readJson } from "../exchange/loop-turns.js";
import { firstHeader, headerEntries } from "../exchange/request.js";
import { faultResponse, type V2Response } from "../exchange/response.js";
import { compress, decompress, requestEncoding, responseEncoding } from "../infer/content-encoding.js";
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
import { BODY_ALLOWANCE, maxNumbers } from "../limits.js";
import { type HttpExchange, modelRoutePath, type Route, traceReceived } from "./route.js";

/** Inference. */
export const inferRoute: Route = {
  path: modelRoutePath("infer"),
  methods: ["POST"],
  group: "inference",
  errorType: "text/plain",
  handle: reportingLoad(infer),
};

/** Text of the refusal of a decoupled model. */
const DECOUPLED = { unaryOnly: "HTTP end point doesn't support models with decoupled transaction policy" };

/**
 * Errors before the request is read, errors of the model and errors of encoding the answer are `text/plain`. Errors of
 * reading and checking the request are `application/json`.
 */
async function infer(exchange: HttpExchange): Promise<V2Response> {
  const { service, request, memory, maxInputSize } = exchange;
  const call = new Exchange(service, request, service.model(exchange.model, exchange.version), DECOUPLED);
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
  const regions = new RequestRegions(service.sharedMemory);
  try {
    let decoded: DecodedRequest;
    let response: InferenceResponse;
    if (headerLength < LONG_DOCUMENT_BYTES) {
      decoded =
        headerLength === 0
          ? decodeRawRequest(call.current(), body, maxInputSize)
          : decodeInferRequest(call.current(), body, headerLength, maxInputSize, regions);
      if (request.ownsBody === true) decoded.onInputsUsed = freeWhenUsed(body);
      response = await send(exchange, call, decoded);
    } else [decoded, response] = await sendLongDocument(exchange, call, body, headerLength, regions);
    const encoded = isLongAnswer(response, decoded.outputs)
      ? await loopTurns.writeSteps(request, () =>
          encodeSteps(call.model, response, decoded.outputs, exchange.labels),
        )
      : encodeInferResponse(call.model, response, decoded.outputs, exchange.labels);
    return inferResponse(encoded, firstHeader(request, "accept-encoding"));
  } finally {
    if (call.answered) exchange.errorType = "text/plain";
    regions.release();
  }
}

/** Decodes and sends a request with long JSON in turns of the event loop. */
async function sendLongDocument(
  exchange: HttpExchange,
  call: Exchange,
  body: Uint8Array,
  headerLength: number,
  regions: RequestRegions,
): Promise<[DecodedRequest, InferenceResponse]> {
  const { request, maxInputSize } = exchange;
  let decoded!: DecodedRequest;
  const use = (json: JsonValue): Promise<InferenceResponse> => {
    decoded = decodeInferJson(call.current(), json, body, headerLength, maxInputSize, regions);
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
  free();
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
  return compress(Buffer.concat(pieces), encoding).then((body) => ({ status: 200, headers, body }));
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
