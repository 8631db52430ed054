import type { ParameterValue } from "@tritonjs/protocol";
import type { ParsedConfig } from "../config-text.js";
import type { ModelRequest } from "./behaviour.js";
import { elements, text } from "./tensors.js";

/** One request of an execution, as the recordings write it. */
export interface ExecutedRequest {
  readonly id: string;
  /** Shape and first 16 values of each input; those of a null request are "undefined". */
  readonly in: Readonly<Record<string, readonly [readonly number[], readonly unknown[] | "undefined"]>>;
  readonly parameters?: Readonly<Record<string, ParameterValue>>;
  readonly corrid?: bigint | number | string;
  /** 1 for START, 2 for END. */
  readonly flags?: number;
  /** Fills an empty slot of a sequence batch. */
  readonly null?: boolean;
}

/** The parts of a request that a model saw, without zero and empty ones. */
export function describeRequest(request: ModelRequest, config: ParsedConfig): ExecutedRequest {
  const { id, inputs, parameters, correlationId, ready } = request;
  const tensors = Object.entries(inputs).map(([name, array]) => {
    const values = [...elements(array)].slice(0, 16);
    const isInput = config.input?.some((input) => input.name === name);
    const shown = values.map((value) => (value instanceof Uint8Array ? text(value) : value));
    const content = isFlag(config, name) ? shown.map(Boolean) : shown;
    return [name, [array?.shape ?? [], !ready && isInput ? "undefined" : content]];
  });
  const flags = (request.sequenceStart ? 1 : 0) | (request.sequenceEnd ? 2 : 0);
  return {
    id,
    in: Object.fromEntries(tensors),
    ...(Object.keys(parameters).length > 0 ? { parameters: { ...parameters } } : {}),
    ...(correlationId ? { corrid: correlationId } : {}),
    ...(flags > 0 ? { flags } : {}),
    ...(ready ? {} : { null: true }),
  };
}

/** True for a control tensor of the type BOOL. */
function isFlag({ sequenceBatching }: ParsedConfig, name: string): boolean {
  const input = sequenceBatching?.controlInput.find((one) => one.name === name);
  return input?.control.some(({ boolFalseTrue }) => boolFalseTrue.length > 0) ?? false;
}
