import { DATA_TYPES } from "@tritonjs/protocol";
import type { TypedModel, TypedModels, TypedTensor } from "./typed-model.js";

/** More labels than this are `string`: a union of them would slow the editor. ImageNet has 1,000. */
const MOST_LABELS = 2_000;

/**
 * Writes the declarations of models: the interface `Models`, for `createClient<Models>()`.
 *
 * @param forCore whether the file also types `triton.infer` and `triton.bind`, for programs that have `@tritonjs/core`
 */
export function typesText({ models, unread }: TypedModels, forCore: boolean): string {
  return [
    "// Written by `tritonjs types`: do not edit.",
    "",
    "/** The models by name, for `createClient<Models>()` of `@tritonjs/client`. */",
    "export interface Models {",
    ...unread.map((text) => `  // ${oneLine(text)}`),
    ...(unread.length > 0 ? ["  [modelName: string]: unknown;"] : []),
    ...models.flatMap(modelLines),
    "}",
    ...(forCore
      ? [
          "",
          'declare module "@tritonjs/core" {',
          "  /** The models that `triton.infer` and `triton.bind` know. */",
          "  interface TritonModels extends Models {}",
          "}",
        ]
      : []),
    "",
  ].join("\n");
}

function modelLines({ name, inputs, outputs, decoupled, sequence, notes }: TypedModel): string[] {
  const comment = notes.length === 0 ? [] : [`  /** ${sentence(notes.join("; "))} */`];
  if (inputs === undefined || outputs === undefined) return [...comment, `  ${jsonText(name)}: unknown;`];
  return [
    ...comment,
    `  ${jsonText(name)}: {`,
    `    inputs: ${tuple(inputs)};`,
    `    outputs: ${tuple(outputs)};`,
    ...flag("decoupled", decoupled),
    ...flag("sequence", sequence),
    "  };",
  ];
}

function flag(name: string, value: boolean | undefined): string[] {
  return value === false ? [] : [`    ${name}: ${value ?? "unknown"};`];
}

function tuple(tensors: readonly TypedTensor[]): string {
  if (tensors.length === 0) return "readonly []";
  return ["readonly [", ...tensors.flatMap(tensorLines), "    ]"].join("\n");
}

function tensorLines({ name, dtype, dims, optional, labels, note }: TypedTensor): string[] {
  const known = labels !== undefined && labels.length <= MOST_LABELS;
  const notes = [
    ...(note === undefined ? [] : [note]),
    ...(labels !== undefined && !known ? [`it has ${labels.length} labels, too many for the editor`] : []),
  ];
  const types = dtype === undefined ? DATA_TYPES.map(jsonText).join(" | ") : jsonText(dtype);
  const fields = [
    `readonly name: ${jsonText(name)}`,
    `readonly dtype: ${types}`,
    `readonly shape: readonly [${dims.join(", ")}]`,
    ...(optional ? ["readonly optional: true"] : []),
    ...(known ? [`readonly labels: readonly [${labels.map(jsonText).join(", ")}]`] : []),
  ];
  return [
    ...(notes.length === 0 ? [] : [`      // ${sentence(notes.join("; "))}`]),
    `      { ${fields.join("; ")} },`,
  ];
}

export const jsonText = (text: string): string => JSON.stringify(text);

function sentence(text: string): string {
  const line = oneLine(text);
  return `${line.slice(0, 1).toUpperCase()}${line.slice(1).replace(/\.$/, "")}.`;
}

/** A text that neither ends a comment nor begins a new line, whatever a server or a file put into it. */
export function oneLine(text: string): string {
  return text
    .replace(/[\s\p{Cc}]+/gu, " ")
    .replaceAll("*/", "* /")
    .trim();
}
