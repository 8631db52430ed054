import {
  freeWhenUsed,
  type InferenceResponse,
  type PinnedModel,
  type ReadyModel,
  RequestRegions,
} from "@tritonjs/core/frontend";
import { isDecoupled, TritonError } from "@tritonjs/protocol";
import type { DecodedRequest } from "../decode/decoded-request.js";
import { decompress, type RequestEncoding, requestEncoding } from "../decode/decompress.js";
import { forwardHeaders } from "../decode/forwarded-headers.js";
import { decodeInferJson, decodeInferRequest, inferenceHeaderLength } from "../decode/infer-request.js";
import { decodeRawRequest } from "../decode/raw-request.js";
import { InputReader } from "../decode/request-inputs.js";
import type { OutputForms } from "../decode/requested-outputs.js";
import {
  type EncodedResponse,
  encodeInferResponse,
  encodeSteps,
  isLongAnswer,
} from "../encode/infer-response.js";
import { compress, responseEncoding } from "../encode/response-encoding.js";
import { loopTurns } from "../exchange/loop-turns.js";
import { isLongDocument, readJson } from "../exchange/read-json.js";
import { firstHeader } from "../exchange/request.js";
import { faultResponse, type V2Response } from "../exchange/response.js";
import type { JsonValue } from "../json/json-value.js";
import { BODY_ALLOWANCE, maxNumbers } from "../limits.js";
import { traceReceived } from "./http-trace.js";
import { reportingLoad } from "./report-load.js";
import { type Exchange, modelRoutePath, type Route } from "./route.js";
import { runSingle, turnAtFullQueue } from "./run-inference.js";

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
