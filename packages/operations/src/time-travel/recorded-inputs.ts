import type { EqualInputsRule, Tensors } from "@tritonjs/core/internal";
import { type DataType, type ModelConfig, type Shape, Tensor } from "@tritonjs/protocol";

/** A tensor as a recording keeps it: its shape decides about batches, and the content of shape tensors. */
type RecordedInput = readonly [name: string, datatype: DataType, shape: Shape, content?: string];

/** A configuration as JSON. Values that JSON cannot hold do not decide about batches. */
export function everything(config: ModelConfig): unknown {
  const { modelWarmup: _, ...rest } = config;
  return JSON.parse(
    JSON.stringify(rest, (_key, value: unknown) =>
      typeof value === "bigint" ? Number(value) : value instanceof Uint8Array ? undefined : value,
    ),
  );
}

/** The inputs as a text that is equal for requests that may share a batch; empty if any may. */
export function inputsText(inputs: Tensors, config: ModelConfig, rule: EqualInputsRule): string {
  if (!rule.compares) return "";
  const recorded: RecordedInput[] = [];
  for (const [name, tensor] of inputs) {
    const isShape = config.input.some((input) => input.name === name && input.isShapeTensor);
    const content = isShape ? Buffer.from(tensor.bytes).toString("base64") : undefined;
    const { datatype, shape } = tensor;
    recorded.push(content === undefined ? [name, datatype, shape] : [name, datatype, shape, content]);
  }
  return JSON.stringify(recorded);
}

/** Inputs of a replayed request. All of one text are the same objects, without data. */
export function inputsOf(text: string): Tensors {
  if (text === "") return new Map();
  return new Map(
    (JSON.parse(text) as RecordedInput[]).map(([name, datatype, shape, content]) => {
      // The elements of other tensors are never read.
      const bytes = new Uint8Array(Buffer.from(content ?? "", "base64"));
      return [name, Tensor.fromBytes(datatype, shape, bytes)];
    }),
  );
}
