import {
  DATA_TYPES,
  type DataType,
  fromConfigDataType,
  isNdArray,
  type ModelConfig,
  matchesShape,
  type Shape,
  type Tensor,
  TritonError,
  tensorFromValue,
  typedArrayFor,
} from "@tritonjs/protocol";

import type { Defaults } from "./decorators.js";

/** The defaults of `fillOptionals` as tensors, and the problems of defaults that do not fit their input. */
export interface DefaultTensors {
  readonly tensors: ReadonlyMap<string, Tensor>;
  readonly problems: readonly string[];
}

/** Reads the defaults of a model's inputs. The tensors have no batch axis. */
export function defaultTensors(defaults: Defaults, config: ModelConfig): DefaultTensors {
  const tensors = new Map<string, Tensor>();
  const [unknown, dtypes, shapes, problems]: string[][] = [[], [], [], []];
  for (const [name, value] of Object.entries(defaults)) {
    const input = config.input.find((one) => one.name === name);
    if (input === undefined) {
      unknown!.push(name);
      continue;
    }
    const datatype = fromConfigDataType(input.dataType)!;
    const given = dataTypeOf(value);
    if (given !== undefined && !given.includes(datatype)) {
      dtypes!.push(`${name}: dtype=${given[0]} expected_dtype=${datatype}`);
      continue;
    }
    try {
      const tensor = tensorFromValue(value, {
        what: `default of '${name}'`,
        datatype,
        shape: input.dims,
        takesScalar: true,
      });
      if (matchesShape(input.dims, tensor.shape)) tensors.set(name, tensor);
      else shapes!.push(`${name}: shape=${tuple(tensor.shape)} expected_shape=${tuple(input.dims)}`);
    } catch (error) {
      problems!.push(TritonError.from(error).message);
    }
  }
  if (unknown!.length > 0) problems!.unshift(`Could not found ${unknown!.sort().join(", ")} inputs`);
  for (const [list, what] of [[dtypes!, "dtypes"] as const, [shapes!, "shapes"] as const]) {
    if (list.length === 0) continue;
    problems!.push(
      `Could not use ${list.join(", ")} defaults as they have different than input signature ${what}`,
    );
  }
  return { tensors, problems: problems! };
}

/** Data types that an array can have. Undefined for nested arrays, whose elements are converted. */
function dataTypeOf(value: unknown): readonly DataType[] | undefined {
  const elements: unknown = isNdArray(value) ? value.data : value;
  if (!ArrayBuffer.isView(elements)) return undefined;
  return DATA_TYPES.filter(
    (datatype) => datatype !== "BYTES" && elements instanceof (typedArrayFor(datatype) as typeof Uint8Array),
  );
}

function tuple(shape: Shape): string {
  return `(${shape.join(", ")}${shape.length === 1 ? "," : ""})`;
}
