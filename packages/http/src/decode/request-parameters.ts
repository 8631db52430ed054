import { type ParameterValue, TritonError } from "@tritonjs/protocol";
import { asBoolean, asText, asUnsigned, find, isInteger, isUnsigned, members } from "../json/access.js";
import { JsonDouble, type JsonValue } from "../json/json-value.js";
import { MAX_JSON_PARAMETERS } from "../limits.js";
import type { DecodedRequest } from "./decoded-request.js";
import { checkCount } from "./part-count.js";
import { ALL_IN_BINARY, ALL_IN_JSON } from "./requested-outputs.js";

const MAX_CORRELATION_ID_LENGTH = 128;

/** Readers of the parameters with a meaning of their own, by name. */
const reserved: Readonly<Record<string, (value: JsonValue, into: DecodedRequest) => void>> = {
  sequence_id: (value, into) => {
    into.correlationId = isUnsigned(value) ? BigInt(value) : correlationText(value);
  },
  sequence_start: (value, into) => {
    into.sequenceStart = asBoolean(value, "Unable to parse 'sequence_start'");
  },
  sequence_end: (value, into) => {
    into.sequenceEnd = asBoolean(value, "Unable to parse 'sequence_end'");
  },
  priority: (value, into) => {
    into.priority = Number(asUnsigned(value, "Unable to parse 'priority'"));
  },
  timeout: (value, into) => {
    into.queueTimeoutMicroseconds = Number(asUnsigned(value, "Unable to parse 'timeout'"));
  },
  binary_data_output: (value, into) => {
    const binary = asBoolean(value, "Unable to parse 'binary_data_output'");
    into.outputs = binary ? ALL_IN_BINARY : ALL_IN_JSON;
  },
};

/** Reads `parameters` of an infer request into `into`. */
export function readRequestParameters(request: JsonValue, into: DecodedRequest): void {
  const json = find(request, "parameters");
  if (json === undefined) return;
  const given = members(json, "failed to get request params.");
  checkCount("parameters", given.size, MAX_JSON_PARAMETERS);
  let custom: Record<string, ParameterValue> | undefined;
  for (const [name, value] of given) {
    if (Object.hasOwn(reserved, name)) reserved[name]!(value, into);
    else if (name.startsWith("triton_")) {
      throw new TritonError(
        "INVALID_ARG",
        "parameter keys starting with 'triton_' are reserved for Triton usage and should not be specified.",
        { reason: "INVALID_PARAMETER" },
      );
    } else {
      custom ??= Object.create(null) as Record<string, ParameterValue>;
      custom[name] = readParameter(name, value);
    }
  }
  if (custom !== undefined) into.parameters = custom;
}

/** A parameter for the model: string, integer, boolean or double. */
export function readParameter(name: string, value: JsonValue): ParameterValue {
  if (value instanceof Uint8Array) return asText(value);
  if (typeof value === "boolean" || isInteger(value)) return value;
  if (typeof value === "bigint") return Number(value);
  if (value instanceof JsonDouble) return value.value;
  throw new TritonError(
    "INVALID_ARG",
    `parameter '${name}' has invalid type. It should be either 'int', 'bool', or 'string'.`,
    { reason: "INVALID_PARAMETER" },
  );
}

function correlationText(value: JsonValue): string {
  const text = asText(value, "Unable to parse 'sequence_id'");
  if (Buffer.byteLength(text) > MAX_CORRELATION_ID_LENGTH) {
    throw new TritonError(
      "UNSUPPORTED",
      `string correlation ID cannot be longer than ${MAX_CORRELATION_ID_LENGTH} characters`,
    );
  }
  return text;
}
