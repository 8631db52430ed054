import { isDecoupled, TritonError } from "@tritonjs/core";
import { decompress, requestEncoding } from "../decode/decompress.js";
import { forwardHeaders } from "../decode/forwarded-headers.js";
import { decodeInferRequest, inferenceHeaderLength } from "../decode/infer-request.js";
import { decodeRawRequest } from "../decode/raw-request.js";
import { readBody } from "../decode/read-body.js";
import { encodeInferResponse } from "../encode/infer-response.js";
import { BODY_ALLOWANCE } from "../limits.js";
import { firstHeader } from "./first-header.js";
import { type Exchange, modelPath, type Route } from "./route.js";
import { runSingle } from "./run-inference.js";
import { sendInferResponse } from "./send-infer-response.js";

/** Inference. */
export const inferRoute: Route = {
  path: modelPath("infer"),
  methods: ["POST"],
  group: "inference",
  errorType: "text/plain",
  handle: infer,
};

/**
 * Errors of reading and checking the request are `application/json`; those before it, and those that the model or the
 * encoding of its answer leads to, are `text/plain`.
 */
async function infer(exchange: Exchange): Promise<void> {
  const { service, request, reply, maxInputSize } = exchange;
  const model = service.model(exchange.model, exchange.version);
  if (isDecoupled(model.config)) {
    throw new TritonError(
      "UNSUPPORTED",
      "HTTP end point doesn't support models with decoupled transaction policy",
    );
  }
  const body = await readDecompressed(exchange);
  const headerLength = inferenceHeaderLength(
    firstHeader(request, "inference-header-content-length"),
    body.length,
  );
  exchange.errorType = "application/json";
  const decoded =
    headerLength === 0
      ? decodeRawRequest(model, body, maxInputSize)
      : decodeInferRequest(model, body, headerLength, maxInputSize);
  const parameters = forwardHeaders(
    request.raw.rawHeaders,
    exchange.forwardedHeaders,
    decoded.init.parameters,
  );
  const response = await runSingle(exchange, { ...decoded.init, parameters });
  const encoded = encodeInferResponse(model, response, decoded.outputs, exchange.labels);
  await sendInferResponse(reply, encoded, firstHeader(request, "accept-encoding"));
}

async function readDecompressed({ request, reply, maxInputSize }: Exchange): Promise<Uint8Array> {
  const header = firstHeader(request, "content-encoding");
  try {
    const encoding = requestEncoding(header);
    const headerLength = Number.parseInt(firstHeader(request, "inference-header-content-length") ?? "0", 10);
    const body = await readBody(request.raw, maxInputSize, headerLength);
    return await decompress(body, encoding, maxInputSize + BODY_ALLOWANCE);
  } catch (thrown) {
    if (TritonError.is(thrown) && thrown.code === "UNSUPPORTED") {
      reply.header("accept-encoding", "gzip, deflate");
    }
    throw thrown;
  }
}
