import {
  NO_PARAMETERS,
  type Parameters,
  type ParameterValue,
  type Tensor,
  TritonError,
} from "@tritonjs/protocol";

/** Key of the parameters of a response in its object of outputs; shared between copies of the library. */
const key = Symbol.for("tritonjs.responseParameters");

/** Parameters for the responses of a batch: one set for all, or an entry for each request, in order. */
export type ResponseParameters = Parameters | readonly (Parameters | undefined)[];

/**
 * Adds parameters for the response to the outputs of a callback. Clients get them besides the tensors.
 *
 * @param parameters for a callback made with `batch`, a list has those of each request of the batch
 *
 * @example
 * ```ts
 * const inferFunc = batch(({ x }, { requests }) =>
 *   withParameters({ y: x }, requests.map(({ id }) => ({ answered: id, model_revision: 7 }))));
 * ```
 */
export function withParameters<T extends object>(outputs: T, parameters: ResponseParameters): T {
  return Object.defineProperty({ ...outputs }, key, { value: parameters });
}

/** The parameters of a response that `infer` resolves to or `stream` yields. */
export function responseParameters(outputs: object): Parameters {
  const given = givenParameters(outputs) ?? NO_PARAMETERS;
  return isList(given) ? (given[0] ?? NO_PARAMETERS) : given;
}

/** Parameters that `withParameters` added to an object of outputs. */
export function givenParameters(outputs: object): ResponseParameters | undefined {
  return (outputs as { readonly [key]?: ResponseParameters })[key];
}

/** Outputs with parameters for their response: for backends, whose outputs are tensors by name. */
export class OutputsWithParameters extends Map<string, Tensor> {
  constructor(
    outputs: Iterable<readonly [string, Tensor]>,
    readonly parameters: ResponseParameters,
  ) {
    super(outputs);
  }
}

/** Divides the parameters among the requests of a batch. */
export function divideParameters(
  outputs: ReadonlyMap<string, Tensor>,
  divided: ReadonlyMap<string, Tensor>[],
): ReadonlyMap<string, Tensor>[] {
  if (!(outputs instanceof OutputsWithParameters)) return divided;
  return divided.map((part, i) => new OutputsWithParameters(part, parametersOf(outputs, i)));
}

/** The parameters for the response to the request at `index` of its batch. */
export function parametersOf(outputs: ReadonlyMap<string, Tensor>, index = 0): Parameters {
  if (!(outputs instanceof OutputsWithParameters)) return NO_PARAMETERS;
  const { parameters } = outputs;
  return isList(parameters) ? (parameters[index] ?? NO_PARAMETERS) : parameters;
}

/**
 * Takes over the parameters that a callback added to its outputs, if any.
 *
 * @throws TritonError INTERNAL for a parameter that no response can have.
 */
export function takeParameters(
  modelName: string,
  value: object,
  outputs: Map<string, Tensor>,
): Map<string, Tensor> {
  const given = givenParameters(value);
  if (given === undefined) return outputs;
  for (const parameters of isList(given) ? given : [given]) {
    for (const [name, parameter] of Object.entries(parameters ?? {})) {
      if (isParameter(parameter)) continue;
      throw new TritonError(
        "INTERNAL",
        `model '${modelName}' returned a wrong parameter '${name}': expected a string, a boolean, a finite number ` +
          `or an integer of 64 bits, got ${describe(parameter)}`,
        { reason: "INVALID_OUTPUT" },
      );
    }
  }
  return new OutputsWithParameters(outputs, given);
}

function isList(given: ResponseParameters): given is readonly (Parameters | undefined)[] {
  return Array.isArray(given);
}

function isParameter(value: unknown): value is ParameterValue {
  if (typeof value === "number") return Number.isFinite(value);
  if (typeof value === "bigint") return BigInt.asIntN(64, value) === value;
  return typeof value === "string" || typeof value === "boolean";
}

function describe(value: unknown): string {
  return typeof value === "number" || typeof value === "bigint" ? String(value) : typeof value;
}
