import type { ReadyModel, RequestRegions } from "@tritonjs/core/frontend";
import { TritonError } from "@tritonjs/protocol";
import { asText, find } from "../json/access.js";
import type { JsonValue } from "../json/json-value.js";
import { parseJson } from "../json/parse-json.js";
import { maxNumbers } from "../limits.js";
import { DecodedRequest } from "./decoded-request.js";
import { headerKey, keepHeader, knownHeader } from "./known-headers.js";
import { InputReader } from "./request-inputs.js";
import { readRequestParameters } from "./request-parameters.js";
import { readRequestedOutputs } from "./requested-outputs.js";

/**
 * Decodes the body of an infer request: `headerLength` bytes of JSON, then the tensors that the JSON announces with
 * `binary_data_size`, in the order of the inputs.
 *
 * @param regions holds the shared memory that the request names, until the caller releases it
 * @throws TritonError with Triton's code and text for the first fault.
 */
export function decodeInferRequest(
  model: ReadyModel,
  body: Uint8Array,
  headerLength: number,
  maxInputSize: number,
  regions: RequestRegions,
): DecodedRequest {
  const key = headerLength < body.length ? headerKey(body, headerLength) : undefined;
  const known = key === undefined ? undefined : knownHeader(model, key);
  const reader = new InputReader(model, body.subarray(headerLength), maxInputSize, regions);
  if (known !== undefined) return known.request.withInputs(reader.readBinary(known.inputs));
  const json = parseJson(body.subarray(0, headerLength), maxNumbers(maxInputSize));
  const request = decodeInferJson(model, json, reader, regions);
  if (key !== undefined) keepHeader(model, key, request, reader.binaryInputs);
  return request;
}

/**
 * Decodes an infer request whose JSON has been parsed.
 *
 * @param reader reads the inputs, with the tensors behind the JSON
 * @throws TritonError with Triton's code and text for the first fault.
 */
export function decodeInferJson(
  model: ReadyModel,
  json: JsonValue,
  reader: InputReader,
  regions: RequestRegions,
): DecodedRequest {
  const idJson = find(json, "id");
  const request = new DecodedRequest();
  if (idJson !== undefined) request.id = asText(idJson, "Unable to parse 'id'");
  readRequestParameters(json, request);
  request.inputs = reader.read(json, request.id);
  const named = readRequestedOutputs(json, model.config.output.length, regions);
  if (named.size > 0) {
    request.requestedOutputs = [...named.keys()];
    request.outputs = { named, others: request.outputs.others };
  }
  return request;
}

/**
 * Length of the JSON at the start of a body: the header `Inference-Header-Content-Length`, read like C's `atoi`, or
 * else the whole body. 0 announces a body that consists of one tensor.
 *
 * @throws TritonError INVALID_ARG when the header points outside the body.
 */
export function inferenceHeaderLength(header: string | undefined, bodyLength: number): number {
  if (header === undefined) return bodyLength;
  const length = Number.parseInt(header, 10) || 0;
  if (length >= 0 && length <= bodyLength) return length;
  throw new TritonError(
    "INVALID_ARG",
    `inference header size should be in range (0, ${bodyLength}), got: ${header}`,
    { reason: "INVALID_BODY" },
  );
}
