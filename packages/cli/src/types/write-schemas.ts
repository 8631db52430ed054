import type { DataType } from "@tritonjs/protocol";
import type { TypedModel, TypedModels, TypedTensor } from "./typed-model.js";
import { jsonText, oneLine } from "./write-types.js";

/** Schemas of one element, by data type: what JSON can hold, and bigints and bytes, which a call takes too. */
const ELEMENTS: Readonly<Record<DataType, string>> = {
  BOOL: "z.boolean()",
  UINT8: "z.int().min(0).max(255)",
  UINT16: "z.int().min(0).max(65_535)",
  UINT32: "z.uint32()",
  UINT64: "z.union([z.int().min(0), z.uint64()])",
  INT8: "z.int().min(-128).max(127)",
  INT16: "z.int().min(-32_768).max(32_767)",
  INT32: "z.int32()",
  INT64: "z.union([z.int(), z.int64()])",
  FP16: "z.number()",
  BF16: "z.number()",
  FP32: "z.number()",
  FP64: "z.number()",
  BYTES: "z.union([z.string(), z.instanceof(Uint8Array)])",
};

/**
 * Writes schemas of models for zod: the inputs and the outputs of one sample as nested arrays, for input that comes from
 * outside at run time.
 */
export function schemasText({ models, unread }: TypedModels): string {
  return [
    "// Written by `tritonjs types`: do not edit.",
    'import { z } from "zod";',
    "",
    "/** Inputs and outputs of one sample of each model, as nested arrays without the batch axis. */",
    "export const models = {",
    ...unread.map((text) => `  // ${oneLine(text)}`),
    ...models.flatMap(modelLines),
    "};",
    "",
  ].join("\n");
}

function modelLines({ name, inputs, outputs, notes }: TypedModel): string[] {
  const labelled = outputs?.filter(({ labels }) => labels !== undefined && labels.length > 0) ?? [];
  return [
    ...notes.map((note) => `  // ${oneLine(note)}`),
    `  ${key(name)}: {`,
    ...(inputs === undefined ? anyTensors("inputs") : objectLines("inputs", inputs)),
    ...(outputs === undefined ? anyTensors("outputs") : objectLines("outputs", outputs)),
    ...(labelled.length === 0
      ? []
      : [
          "    labels: {",
          ...labelled.map((output) => `      ${key(output.name)}: z.enum([${distinct(output.labels!)}]),`),
          "    },",
        ]),
    "  },",
  ];
}

const distinct = (labels: readonly string[]) => [...new Set(labels)].map(jsonText).join(", ");

const anyTensors = (member: string) => [`    ${member}: z.record(z.string(), z.unknown()),`];

function objectLines(member: "inputs" | "outputs", tensors: readonly TypedTensor[]): string[] {
  return [
    `    ${member}: z.strictObject({`,
    ...tensors.map((tensor) => `      ${key(tensor.name)}: ${tensorSchema(tensor, member)},`),
    "    }),",
  ];
}

function tensorSchema({ dtype, dims, optional }: TypedTensor, member: "inputs" | "outputs"): string {
  const element = dtype === undefined ? "z.unknown()" : ELEMENTS[dtype];
  const nested = dims.reduceRight(
    (schema, dim) => `z.array(${schema})${dim === -1 ? "" : `.length(${dim})`}`,
    element,
  );
  // A call takes a single value for a tensor of one element.
  const takesOne = member === "inputs" && dims.length > 0 && dims.every((dim) => dim === 1);
  const schema = takesOne ? `z.union([${element}, ${nested}])` : nested;
  return optional ? `${schema}.optional()` : schema;
}

/** A property of an object. The name `__proto__` would set the object's prototype. */
function key(name: string): string {
  return name === "__proto__" ? `[${jsonText(name)}]` : jsonText(name);
}
