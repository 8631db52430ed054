import type { inference } from "@tritonjs/grpc-messages";
import { type Parameters, type ParameterValue, TritonError } from "@tritonjs/protocol";
import { invalidArgument } from "./invalid-argument.js";

type Parameter = inference.InferParameter.$Properties;

/**
 * The decoded parameters of a request: reserved ones as members of their own, all others in `parameters` for the model.
 */
export interface InferParameters {
  correlationId?: bigint | string | undefined;
  sequenceStart?: boolean;
  sequenceEnd?: boolean;
  priority?: number;
  queueTimeoutMicroseconds?: number;
  /** True when a stream reports the end of a decoupled request even if no response marks it. */
  enableEmptyFinalResponse: boolean;
  parameters: Parameters;
}

const ENABLE_EMPTY_FINAL_RESPONSE = "triton_enable_empty_final_response";
const RESERVED_PREFIX = "triton_";
const MAX_CORRELATION_ID_BYTES = 128;

/**
 * Reads the parameters of a request into `decoded`.
 *
 * @param forwarded Parameters made of headers: they win over parameters of the same name.
 * @throws TritonError INVALID_ARG for values of a wrong type and for reserved names.
 */
export function decodeInferParameters(
  parameters: Readonly<Record<string, Parameter>>,
  forwarded: Parameters,
  into: InferParameters,
): void {
  const keys = Object.keys(parameters);
  if (keys.length === 0) {
    into.parameters = forwarded;
    return;
  }
  const custom: [string, ParameterValue][] = [];
  for (const key of keys) {
    const parameter = parameters[key]!;
    const reserved = RESERVED.get(key);
    if (reserved !== undefined) reserved(into, parameter, key);
    else if (key.startsWith(RESERVED_PREFIX)) throw reservedKey();
    else custom.push([key, customValue(key, parameter)]);
  }
  into.parameters =
    custom.length === 0 ? forwarded : Object.fromEntries([...custom, ...Object.entries(forwarded)]);
}

type ReservedParameter = (decoded: InferParameters, parameter: Parameter, key: string) => void;

const RESERVED = new Map<string, ReservedParameter>([
  ["sequence_id", setCorrelationId],
  ["sequence_start", (decoded, parameter, key) => (decoded.sequenceStart = bool(key, parameter))],
  ["sequence_end", (decoded, parameter, key) => (decoded.sequenceEnd = bool(key, parameter))],
  ["priority", setPriority],
  ["timeout", setTimeout],
  [
    ENABLE_EMPTY_FINAL_RESPONSE,
    (decoded, parameter, key) => (decoded.enableEmptyFinalResponse = bool(key, parameter)),
  ],
]);

/** An integer id is unsigned: -1 is the largest id. */
function setCorrelationId(decoded: InferParameters, parameter: Parameter, key: string): void {
  if (parameter.parameterChoice === "int64Param") {
    decoded.correlationId = BigInt.asUintN(64, BigInt(parameter.int64Param!));
  } else if (parameter.parameterChoice === "stringParam") {
    const id = parameter.stringParam!;
    if (Buffer.byteLength(id) > MAX_CORRELATION_ID_BYTES) {
      throw new TritonError(
        "UNSUPPORTED",
        `string correlation ID cannot be longer than ${MAX_CORRELATION_ID_BYTES} characters`,
      );
    }
    decoded.correlationId = id;
  } else throw wrongKind(key, "int64_param or string_param");
}

function setPriority(decoded: InferParameters, parameter: Parameter, key: string): void {
  if (parameter.parameterChoice === "int64Param") {
    if (parameter.int64Param! < 0)
      throw invalidArgument("invalid value for 'priority', expected value >= 0.", "INVALID_PARAMETER");
    decoded.priority = Number(parameter.int64Param);
  } else if (parameter.parameterChoice === "uint64Param") {
    decoded.priority = Number(parameter.uint64Param);
  } else throw wrongKind(key, "int64_param or uint64_param");
}

/** A timeout is unsigned, so a negative one never expires in practice. */
function setTimeout(decoded: InferParameters, parameter: Parameter, key: string): void {
  if (parameter.parameterChoice !== "int64Param") throw wrongKind(key, "int64_param");
  decoded.queueTimeoutMicroseconds = Number(BigInt.asUintN(64, BigInt(parameter.int64Param!)));
}

function customValue(key: string, parameter: Parameter): ParameterValue {
  switch (parameter.parameterChoice) {
    case "int64Param":
      return parameter.int64Param!;
    case "boolParam":
      return parameter.boolParam!;
    case "stringParam":
      return parameter.stringParam!;
    case "doubleParam":
      return parameter.doubleParam!;
    default:
      throw wrongKind(key, "int64_param, bool_param, or string_param");
  }
}

function bool(key: string, parameter: Parameter): boolean {
  if (parameter.parameterChoice !== "boolParam") throw wrongKind(key, "bool_param");
  return parameter.boolParam!;
}

function wrongKind(key: string, expected: string): TritonError {
  return invalidArgument(
    `invalid value type for '${key}' parameter, expected ${expected}.`,
    "INVALID_PARAMETER",
  );
}

function reservedKey(): TritonError {
  return invalidArgument(
    `parameter keys starting with '${RESERVED_PREFIX}' are reserved for Triton usage. Only the following keys ` +
      `starting with '${RESERVED_PREFIX}' are allowed: ${ENABLE_EMPTY_FINAL_RESPONSE}`,
    "INVALID_PARAMETER",
  );
}
