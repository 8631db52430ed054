import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type DataType, encodeBytes } from "@tritonjs/protocol";
import { knownShape } from "./input-shapes.js";
import { invalidOption } from "./invalid-option.js";
import type { StepRules } from "./json-steps.js";
import type { Step } from "./steps.js";
import { checkedBytes, deduced } from "./tensor-reader.js";

/**
 * Reads one row from files that have the names of the inputs: little-endian elements in row-major order, and for BYTES
 * a line of text for each element. Files with the names of outputs hold what responses must have.
 *
 * @throws TritonError INVALID_ARG that names the file.
 */
export async function stepOfDirectory(path: string, { model, shapes }: StepRules): Promise<Step> {
  const inputs: Step["inputs"] extends ReadonlyMap<infer K, infer V> ? Map<K, V> : never = new Map();
  for (const input of model.inputs) {
    const file = join(path, input.name);
    const content = await readOptional(file);
    if (content === undefined && input.optional) continue;
    if (content === undefined)
      throw invalidOption(
        `${path}: expected a file '${input.name}' for the input of model '${model.name}', got none`,
      );
    const known = knownShape(input, shapes);
    const bytes = checkedBytes(input.datatype, bytesOf(input.datatype, content), known ?? input.dims, file);
    inputs.set(input.name, { shape: known ?? deduced(input, bytes, file), bytes });
  }
  const expected = [];
  for (const { name, datatype } of model.outputs) {
    const content = await readOptional(join(path, name));
    if (content !== undefined) expected.push({ name, datatype, bytes: bytesOf(datatype, content) });
  }
  return { inputs, expected: expected.length > 0 ? expected : undefined, where: path };
}

async function readOptional(file: string): Promise<Buffer | undefined> {
  try {
    return await readFile(file);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw invalidOption(`cannot read '${file}': ${(cause as Error).message}`, cause);
  }
}

function bytesOf(datatype: DataType, content: Buffer): Uint8Array {
  if (datatype !== "BYTES") return new Uint8Array(content);
  const lines = content
    .toString("utf8")
    .replace(/\r?\n$/, "")
    .split(/\r?\n/);
  return encodeBytes(lines.map((line) => new TextEncoder().encode(line)));
}
