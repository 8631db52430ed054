import { freeWhenUsed, type ReadyModel, RequestRegions } from "@tritonjs/core/frontend";
import { isDecoupled, TritonError } from "@tritonjs/protocol";
import { decompress, type RequestEncoding, requestEncoding } from "../decode/decompress.js";
import { forwardHeaders } from "../decode/forwarded-headers.js";
import { decodeInferRequest, inferenceHeaderLength } from "../decode/infer-request.js";
import { decodeRawRequest } from "../decode/raw-request.js";
import { type EncodedResponse, encodeInferResponse } from "../encode/infer-response.js";
import { compress, responseEncoding } from "../encode/response-encoding.js";
import { firstHeader } from "../exchange/request.js";
import { faultResponse, type V2Response } from "../exchange/response.js";
import { BODY_ALLOWANCE } from "../limits.js";
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
  const { service, request, maxInputSize } = exchange;
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
  const start = service.tracing?.now();
  const body = await readDecompressed(exchange, encoding);
  traceReceived(exchange, start);
  const headerLength = inferenceHeaderLength(
    firstHeader(request, "inference-header-content-length"),
    body.length,
  );
  exchange.errorType = "application/json";
  const model = found.inService();
  if (model !== found) refuseDecoupled(model);
  const regions = new RequestRegions(service.sharedMemory);
  let encoded: EncodedResponse;
  try {
    const decoded =
      headerLength === 0
        ? decodeRawRequest(model, body, maxInputSize)
        : decodeInferRequest(model, body, headerLength, maxInputSize, regions);
    if (request.ownsBody === true) decoded.onInputsUsed = freeWhenUsed(body);
    const { forwardedHeaders } = exchange;
    if (forwardedHeaders !== undefined) {
      decoded.parameters = forwardHeaders(request.rawHeaders, forwardedHeaders, decoded.parameters);
    }
    const response = await runSingle(exchange, model, decoded);
    encoded = encodeInferResponse(model, response, decoded.outputs, exchange.labels);
  } finally {
    regions.release();
  }
  return inferResponse(encoded, firstHeader(request, "accept-encoding"));
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
