import { copyFile, mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { basename, dirname, join, relative } from "node:path";
import {
  type DataType,
  elementByteSize,
  fromConfigDataType,
  type ModelConfig,
  type ModelInput,
  type ModelOutput,
  TritonError,
  toOnnxType,
} from "@tritonjs/protocol";
import { readPrototxt } from "@tritonjs/repository/config";
import { Command } from "commander";
import type { CommandContext } from "../command-context.js";

/** `tritonjs stub`: writes a small ONNX file in the place of each model file that is not there yet. */
export function stubCommand({ terminal, finish }: CommandContext): Command {
  return new Command("stub")
    .description(
      "write an ONNX file with the tensors of a configuration, which answers zeros and empty strings",
    )
    .argument("<path>", "a config.pbtxt, a directory of a model, or a model repository")
    .option("--out <directory>", "repository to write to; beside the configurations unless given")
    .action(async (path: string, { out }: { readonly out?: string }) => {
      let failed = false;
      for (const file of await configurationsIn(path)) {
        const directory = dirname(file);
        const name = basename(directory);
        try {
          const written = await writeStub(file, name, out === undefined ? directory : join(out, name));
          terminal.write(`${written}\n`);
        } catch (error) {
          failed = true;
          terminal.writeError(`${relative("", file)}: ${TritonError.from(error).message}\n`);
        }
      }
      finish(failed ? 1 : 0);
    });
}

/** Paths of the configurations that a path names. @throws TritonError INVALID_ARG for a path without one */
async function configurationsIn(path: string): Promise<string[]> {
  const kind = await stat(path).catch(() => undefined);
  if (kind?.isFile()) return [path];
  const own = join(path, "config.pbtxt");
  const isModel = await exists(own);
  const entries = kind?.isDirectory() && !isModel ? (await readdir(path)).sort() : [];
  const found = isModel ? [own] : entries.map((entry) => join(path, entry, "config.pbtxt"));
  const files: string[] = [];
  for (const file of found) if (await exists(file)) files.push(file);
  if (files.length > 0) return files;
  const expected = "a config.pbtxt, a directory of a model, or a repository of models with a config.pbtxt";
  const got = kind === undefined ? "a path that does not exist" : "none in it";
  throw new TritonError("INVALID_ARG", `cannot write stubs for '${path}': expected ${expected}, got ${got}`);
}

const exists = (path: string) =>
  stat(path).then(
    () => true,
    () => false,
  );

/** Writes the file of one model, and returns a line that says so. */
async function writeStub(file: string, directoryName: string, directory: string): Promise<string> {
  const config = readPrototxt(await readFile(file, "utf8"));
  const name = config.name || directoryName;
  if (directory !== dirname(file)) await copyConfiguration(file, directory);
  if (config.ensembleScheduling !== undefined) {
    // Version control keeps no empty directory.
    await mkdir(join(directory, "1"), { recursive: true });
    return `${name} is an ensemble: its steps have the files`;
  }
  const path = join(directory, "1", config.defaultModelFilename || "model.onnx");
  if (await exists(path)) return `${path} exists: kept as it is`;
  const bytes = stubOf({ ...config, name });
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, bytes);
  return `wrote ${path}`;
}

async function copyConfiguration(file: string, directory: string): Promise<void> {
  await mkdir(directory, { recursive: true });
  await copyFile(file, join(directory, "config.pbtxt"));
}

/**
 * Makes an ONNX file with the inputs and outputs of a configuration. Each output is a constant, expanded to its shape: the
 * batch size is that of the first input, and so is any other variable dimension at the same place.
 *
 * @throws TritonError INVALID_ARG for a tensor without a data type or dims, or of BF16, which ONNX Runtime cannot expand
 */
export function stubOf({ name, input, output, maxBatchSize }: ModelConfig): Uint8Array {
  const batch = maxBatchSize > 0 ? [-1] : [];
  const shapeOf = (kind: string, tensor: ModelInput | ModelOutput): Tensor => {
    const dims = tensor.reshape?.shape ?? tensor.dims;
    const dtype = fromConfigDataType(tensor.dataType);
    if (dtype === undefined || tensor.dims.length === 0) {
      const lacks = dtype === undefined ? `data_type, got ${tensor.dataType}` : "dims, got none";
      throw invalid(`model '${name}', ${kind} '${tensor.name}': expected ${lacks}`);
    }
    if (dtype === "BF16" && kind === "output") {
      throw invalid(
        `model '${name}', output '${tensor.name}': expected a type that ONNX Runtime expands, got BF16`,
      );
    }
    return { name: tensor.name, dtype, dims: [...batch, ...dims] };
  };
  const inputs = input.map((tensor) => shapeOf("input", tensor));
  const outputs = output.map((tensor) => shapeOf("output", tensor));
  if (inputs.length === 0) throw invalid(`model '${name}': expected at least one input, got none`);
  if (outputs.length === 0) throw invalid(`model '${name}': expected at least one output, got none`);
  const parts = outputs.map((tensor) => expanded(tensor, inputs[0]!));
  const graph = Buffer.concat([
    node("Shape", [inputs[0]!.name], INPUT_SHAPE),
    ...parts.flatMap(({ nodes }) => nodes),
    text(2, name),
    ...parts.flatMap(({ constants }) => constants).map((constant) => bytes(5, constant)),
    ...inputs.map((tensor) => bytes(11, valueInfo(tensor))),
    ...outputs.map((tensor) => bytes(12, valueInfo(tensor))),
  ]);
  return Buffer.concat([
    number(1, IR_VERSION),
    text(2, "tritonjs stub"),
    bytes(7, graph),
    bytes(8, Buffer.concat([text(1, ""), number(2, OPSET)])),
  ]);
}

interface Tensor {
  readonly name: string;
  readonly dtype: DataType;
  /** With the batch dimension; -1 for a variable one. */
  readonly dims: readonly number[];
}

/** Versions of the format and of the operators that ONNX Runtime 1.14 and newer read. */
const IR_VERSION = 8;
const OPSET = 17;

/** Name of the shape of the first input: no tensor of a configuration has spaces in its name. */
const INPUT_SHAPE = "shape of the first input";

/** The nodes and constants that make one output. */
function expanded(
  { name, dtype, dims }: Tensor,
  first: Tensor,
): { readonly nodes: Buffer[]; readonly constants: Buffer[] } {
  if (dims.length === 0) {
    return {
      nodes: [node("Identity", [`value of ${name}`], name)],
      constants: [constant(`value of ${name}`, dtype, [], undefined)],
    };
  }
  const nodes: Buffer[] = [];
  const constants = [constant(`value of ${name}`, dtype, [], undefined)];
  const parts = dims.map((dim, axis) => {
    const part = `dimension ${axis} of ${name}`;
    const follows = dim === -1 && first.dims[axis] === -1;
    const values = [follows ? axis : dim === -1 ? 1 : dim];
    constants.push(constant(follows ? `axis ${axis} for ${name}` : part, "INT64", [1], values));
    if (follows) nodes.push(node("Gather", [INPUT_SHAPE, `axis ${axis} for ${name}`], part));
    return part;
  });
  const shape = `shape of ${name}`;
  nodes.push(
    node("Concat", parts, shape, bytes(5, Buffer.concat([text(1, "axis"), number(3, 0), number(20, 2)]))),
  );
  nodes.push(node("Expand", [`value of ${name}`, shape], name));
  return { nodes, constants };
}

/*
 * Messages of ONNX, with the field numbers of onnx.proto.
 */

function node(
  type: string,
  inputs: readonly string[],
  output: string,
  attributes: Buffer = Buffer.alloc(0),
): Buffer {
  return bytes(
    1,
    Buffer.concat([...inputs.map((one) => text(1, one)), text(2, output), text(4, type), attributes]),
  );
}

/** A constant tensor; zeros or empty strings without values. */
function constant(
  name: string,
  dtype: DataType,
  dims: readonly number[],
  values: readonly number[] | undefined,
): Buffer {
  const data =
    dtype === "BYTES"
      ? text(6, "")
      : bytes(
          9,
          values === undefined
            ? Buffer.alloc(elementByteSize(dtype))
            : Buffer.from(BigInt64Array.from(values, BigInt).buffer),
        );
  return Buffer.concat([
    ...dims.map((dim) => number(1, dim)),
    number(2, toOnnxType(dtype)),
    text(8, name),
    data,
  ]);
}

function valueInfo({ name, dtype, dims }: Tensor): Buffer {
  const shape = dims.map((dim, axis) => bytes(1, dim === -1 ? text(2, `${name}_${axis}`) : number(1, dim)));
  const tensorType = Buffer.concat([number(1, toOnnxType(dtype)), bytes(2, Buffer.concat(shape))]);
  return Buffer.concat([text(1, name), bytes(2, bytes(1, tensorType))]);
}

const varint = (value: number): Buffer => {
  const out: number[] = [];
  for (let rest = BigInt(value); ; rest >>= 7n) {
    const low = Number(rest & 0x7fn);
    if (rest < 0x80n) return Buffer.from([...out, low]);
    out.push(low | 0x80);
  }
};

const number = (field: number, value: number) => Buffer.concat([varint(field * 8), varint(value)]);
const bytes = (field: number, data: Uint8Array) =>
  Buffer.concat([varint(field * 8 + 2), varint(data.length), data]);
const text = (field: number, value: string) => bytes(field, Buffer.from(value));

function invalid(message: string): TritonError {
  return new TritonError("INVALID_ARG", message, { reason: "INVALID_CONFIG" });
}
