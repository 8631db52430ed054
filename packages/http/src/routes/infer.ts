import type {
  InferenceResponse,
  PinnedModel,
  ReadyModel,
  ResponseHandler,
  RoomWait,
} from "@tritonjs/core/frontend";
import {
  freeWhenUsed,
  LOAD_REPORT_FORMAT_HEADER,
  LOAD_REPORT_HEADER,
  RequestRegions,
  writeLoadReport,
} from "@tritonjs/core/internal";
import {
  isDecoupled,
  isReservedParameter,
  type Parameters,
  type ParameterValue,
  TritonError,
} from "@tritonjs/protocol";
import { isLongDocument, loopTurns, readJson } from "../exchange/loop-turns.js";
import { ClientGone, firstHeader } from "../exchange/request.js";
import { faultResponse, type V2Response } from "../exchange/response.js";
import {
  compress,
  decompress,
  type RequestEncoding,
  requestEncoding,
  responseEncoding,
} from "../infer/content-encoding.js";
import {
  type DecodedRequest,
  decodeInferJson,
  decodeInferRequest,
  decodeRawRequest,
  InputReader,
  inferenceHeaderLength,
  type OutputForms,
} from "../infer/infer-request.js";
import {
  type EncodedResponse,
  encodeInferResponse,
  encodeSteps,
  isLongAnswer,
} from "../infer/infer-response.js";
import type { JsonValue } from "../json/json-value.js";
import { BODY_ALLOWANCE, maxNumbers } from "../limits.js";
import { type Exchange, modelRoutePath, type Route, traceReceived } from "./route.js";

/** Inference. */
export const inferRoute: Route = {
  path: modelRoutePath("infer"),
  methods: ["POST"],
  group: "inference",
  errorType: "text/plain",
  handle: reportingLoad(infer),
};

/**
 * Errors before the request is read, errors of the model and errors of encoding the answer are `text/plain`. Errors of
 * reading and checking the request are `application/json`.
 */
async function infer(exchange: Exchange): Promise<V2Response> {
  const { service, request } = exchange;
  const found = service.model(exchange.model, exchange.version);
  refuseDecoupled(found);
  const encoding = requestEncoding(firstHeader(request, "content-encoding"));
  if (encoding === undefined) {
    return faultResponse(501, "Unsupported compression type", "text/plain", {
      "accept-encoding": "gzip, deflate",
    });
  }
  const turn = turnAtFullQueue(exchange, found);
  if (turn !== undefined) await turn;
  const since = service.tracing?.now();
  const body = await readDecompressed(exchange, encoding);
  traceReceived(exchange, since);
  const headerLength = inferenceHeaderLength(
    firstHeader(request, "inference-header-content-length"),
    body.length,
  );
  exchange.errorType = "application/json";
  const regions = new RequestRegions(service.sharedMemory);
  try {
    const started = decodeAndStart(exchange, found, body, headerLength, regions);
    const { model, outputs, response } = started instanceof Promise ? await started : started;
    const encoded = encodeAnswer(exchange, model, await response, outputs);
    return inferResponse(
      encoded instanceof Promise ? await encoded : encoded,
      firstHeader(request, "accept-encoding"),
    );
  } finally {
    regions.release();
  }
}

/** A request that its model has accepted. */
interface Started {
  readonly model: PinnedModel;
  readonly outputs: OutputForms;
  readonly response: Promise<InferenceResponse>;
}

/** Decodes a request for the version that is in service then, and starts it without another wait. */
function decodeAndStart(
  exchange: Exchange,
  found: PinnedModel,
  body: Uint8Array,
  headerLength: number,
  regions: RequestRegions,
): Started | Promise<Started> {
  const { request, maxInputSize } = exchange;
  if (isLongDocument(headerLength)) {
    const use = (json: JsonValue): Started => {
      const model = inService(found);
      const reader = new InputReader(model, body.subarray(headerLength), maxInputSize, regions);
      const decoded = decodeInferJson(model, json, reader, regions);
      if (headerLength < body.length) freeLater(exchange, decoded, body);
      else replaceBody(exchange, decoded, body);
      return startRequest(exchange, model, decoded);
    };
    return readJson(request, body.subarray(0, headerLength), use, maxNumbers(maxInputSize));
  }
  const model = inService(found);
  const decoded =
    headerLength === 0
      ? decodeRawRequest(model, body, maxInputSize)
      : decodeInferRequest(model, body, headerLength, maxInputSize, regions);
  freeLater(exchange, decoded, body);
  return startRequest(exchange, model, decoded);
}

function startRequest(exchange: Exchange, model: PinnedModel, decoded: DecodedRequest): Started {
  const { request, forwardedHeaders } = exchange;
  if (forwardedHeaders !== undefined) {
    decoded.parameters = forwardHeaders(request.rawHeaders, forwardedHeaders, decoded.parameters);
  }
  return { model, outputs: decoded.outputs, response: runSingle(exchange, model, decoded) };
}

function freeLater({ request }: Exchange, decoded: DecodedRequest, body: Uint8Array): void {
  if (request.ownsBody === true) decoded.onInputsUsed = freeWhenUsed(body);
}

/**
 * Counts tensors that were made of long JSON instead of the JSON, which nothing needs any more.
 *
 * @throws TritonError UNAVAILABLE when the tensors do not fit into the memory of requests.
 */
function replaceBody({ request, memory }: Exchange, { inputs }: DecodedRequest, body: Uint8Array): void {
  let bytes = 0;
  for (const { byteLength } of inputs.values()) bytes += byteLength;
  memory.take(bytes);
  const free = request.ownsBody === true ? freeWhenUsed(body) : undefined;
  if (free === undefined) return;
  memory.give(body.length);
  free();
}

function inService(found: PinnedModel): PinnedModel {
  const model = found.inService();
  if (model !== found) refuseDecoupled(model);
  return model;
}

/** Encodes an answer, a long one in turns of the event loop. */
function encodeAnswer(
  { request, labels }: Exchange,
  model: PinnedModel,
  response: InferenceResponse,
  outputs: OutputForms,
): EncodedResponse | Promise<EncodedResponse> {
  if (!isLongAnswer(response, outputs)) return encodeInferResponse(model, response, outputs, labels);
  return loopTurns.writeSteps(request, () => encodeSteps(model, response, outputs, labels));
}

function refuseDecoupled({ config }: ReadyModel): void {
  if (!isDecoupled(config)) return;
  throw new TritonError(
    "UNSUPPORTED",
    "HTTP end point doesn't support models with decoupled transaction policy",
    { reason: "DECOUPLED_MODEL" },
  );
}

function readDecompressed(exchange: Exchange, encoding: RequestEncoding): Promise<Uint8Array> {
  const { request, memory, maxInputSize } = exchange;
  const headerLength = Number.parseInt(firstHeader(request, "inference-header-content-length") ?? "", 10);
  const body = request.readBody(memory, maxInputSize, headerLength >= 0 ? headerLength : undefined);
  if (encoding === "identity") return body;
  return body.then((bytes) => decompress(exchange, bytes, encoding, maxInputSize + BODY_ALLOWANCE));
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
  const encoding = responseEncoding(acceptEncoding);
  if (encoding === "identity") return { status: 200, headers, body: tensors.length === 0 ? json : pieces };
  headers["content-encoding"] = encoding;
  return compress(Buffer.concat(pieces), encoding).then((body) => ({ status: 200, headers, body }));
}

/**
 * Runs a request that has exactly one answer.
 *
 * @throws TritonError when the request is rejected or fails, INTERNAL when there is not exactly one answer.
 */
function runSingle(
  exchange: Exchange,
  model: PinnedModel,
  decoded: DecodedRequest,
): Promise<InferenceResponse> {
  return new Promise((resolve, reject) => {
    let count = 0;
    let last: InferenceResponse | undefined;
    let error: TritonError | undefined;
    startOrRefuse(exchange, model, decoded, reject, (outcome, final) => {
      if (TritonError.is(outcome)) error ??= outcome;
      else if (outcome !== undefined) {
        count++;
        last = outcome;
      }
      if (!final) return;
      if (error !== undefined) reject(error);
      else if (last !== undefined && count === 1) resolve(last);
      else
        reject(
          new TritonError("INTERNAL", `expected a single response, got ${count}`, {
            reason: "INVALID_OUTPUT",
          }),
        );
    });
  });
}

/**
 * The turn of a refusal when the model's queue is full, to be awaited before the body is read: its content cannot
 * matter. Undefined while the queue has room. Rejects with UNAVAILABLE if the queue is still full at the turn, and with
 * ClientGone when the client leaves.
 */
export function turnAtFullQueue(exchange: Exchange, model: PinnedModel): Promise<void> | undefined {
  const wait = model.awaitRoom("");
  return wait && turnOf(exchange, wait);
}

async function turnOf(exchange: Exchange, wait: RoomWait): Promise<void> {
  const { request } = exchange;
  const stopWatching = request.onGone(() => wait.leave());
  try {
    await wait.turn;
  } catch (refusal) {
    if (request.gone) throw new ClientGone(refusal);
    exchange.errorType = "application/json";
    throw refusal;
  } finally {
    stopWatching();
  }
}

/** Works as `start`, but passes the error of a rejected request to `refuse`, at the turn of the refusal. */
export function startOrRefuse(
  exchange: Exchange,
  model: PinnedModel,
  decoded: DecodedRequest,
  refuse: (error: unknown) => void,
  onResponse: ResponseHandler,
): void {
  try {
    start(exchange, model, decoded, refuse, onResponse);
  } catch (thrown) {
    const turn = isUnavailable(thrown) ? exchange.service.refusalTurn?.() : undefined;
    if (turn === undefined) refuse(thrown);
    else void turn.then(() => refuse(thrown));
  }
}

function isUnavailable(thrown: unknown): boolean {
  return TritonError.is(thrown) && thrown.code === "UNAVAILABLE";
}

/**
 * Sends a request, and cancels it when the client leaves. Once the model has accepted it, errors are `text/plain`.
 *
 * @param refuse gets the error of a request that the model rejects later: `onResponse` is then never called
 * @throws TritonError when the request is rejected: `onResponse` is then never called.
 */
function start(
  exchange: Exchange,
  model: PinnedModel,
  decoded: DecodedRequest,
  refuse: (error: unknown) => void,
  onResponse: ResponseHandler,
): void {
  const { request: sender, trace } = exchange;
  if (sender.gone) throw new ClientGone();
  decoded.trace = trace?.request;
  let stopWatching: (() => void) | undefined;
  const sent = model.infer(decoded, (outcome, final, request) => {
    if (final) stopWatching?.();
    if (request.refused) {
      refuse(outcome);
      return;
    }
    exchange.errorType = "text/plain";
    if (outcome !== undefined) trace?.responded();
    onResponse(outcome, final, request);
  });
  if (sent.settled) return;
  // An inline callback has already run by now, and the client may have left meanwhile.
  if (sender.gone) sent.cancel();
  else stopWatching = sender.onGone(() => sent.cancel());
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

async function withReport(exchange: Exchange, format: string, handle: Route["handle"]): Promise<V2Response> {
  const response = await handle(exchange);
  const { service, model, version } = exchange;
  const report = await service.loadReport?.(model, version).catch(() => undefined);
  const text = report && writeLoadReport(report, format);
  if (text === undefined) return response;
  return { ...response, headers: { ...response.headers, [LOAD_REPORT_HEADER]: text } };
}

/**
 * Adds the headers with matching names to the parameters for the model, as strings under the names that the client
 * sent.
 *
 * @param rawHeaders names and values in turn
 * @throws TritonError INVALID_ARG for a matching header with a reserved name.
 */
function forwardHeaders(rawHeaders: readonly string[], pattern: RegExp, parameters: Parameters): Parameters {
  const all: Record<string, ParameterValue> = Object.assign(Object.create(null), parameters);
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!;
    if (!pattern.test(name)) continue;
    if (isReservedParameter(name)) {
      throw new TritonError(
        "INVALID_ARG",
        `Header '${name}' is reserved for Triton usage and cannot be forwarded.`,
        { reason: "INVALID_PARAMETER" },
      );
    }
    all[name] = rawHeaders[i + 1]!;
  }
  return all;
}
