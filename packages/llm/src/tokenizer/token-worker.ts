import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { ExecutionResult, WorkerBatch, WorkerModel } from "@tritonjs/core/backend";
import { assertJsonFits, errorFor, Tensor, TritonError } from "@tritonjs/protocol";
import { TextTokenizer } from "../text-tokenizer.js";
import { type Parts, turns } from "../turns.js";
import { type EncodedText, TokenEncoder } from "./token-encoder.js";
import type { TokenizerPlan } from "./tokenizer-options.js";

/** Data that a worker thread gets. */
export interface TokenizerData {
  readonly plan: TokenizerPlan;
  /** True if tensors have a batch axis. */
  readonly hasBatch: boolean;
  /** True if a row has several texts: the outputs then have an axis for them. */
  readonly hasLines: boolean;
  /** Number of axes of the output of a decoder. */
  readonly textAxes: number;
}

/** Entry of worker threads that encode or decode. */
export async function load(data: unknown): Promise<WorkerModel> {
  const answer = await openTokenizer(data as TokenizerData);
  return {
    ownsOutputs: true,
    execute: async ({ inputs, rows, requests, indivisible }: WorkerBatch) => {
      const separate: ExecutionResult[] = [];
      let first = 0;
      for (const [index, count] of rows.entries()) {
        const signal = requests[index]?.signal;
        // Cancellations arrive between requests.
        if (index > 0) await new Promise((resolve) => setImmediate(resolve));
        const own = indivisible || rows.length === 1 ? inputs : rowsOf(inputs, first, count);
        first += count;
        try {
          separate.push(signal?.aborted ? new Map() : await turns.run(answer(own), signal));
        } catch (error) {
          separate.push(TritonError.from(error));
        }
      }
      return { separate };
    },
  };
}

/** Answers one request, in parts. @throws TritonError INVALID_ARG for inputs that cannot be encoded or decoded */
export type AnswerRequest = (inputs: ReadonlyMap<string, Tensor>) => Parts<Map<string, Tensor>>;

/**
 * Opens the tokenizer of a plan.
 *
 * @throws TritonError INVALID_ARG for files that cannot be read
 */
export async function openTokenizer(data: TokenizerData): Promise<AnswerRequest> {
  const { plan } = data;
  const [tokenizer, config] = await Promise.all([
    readObject(join(plan.directory, "tokenizer.json")),
    readObject(join(plan.directory, "tokenizer_config.json"), true),
  ]);
  const texts = new TextTokenizer({ tokenizer, config });
  if (plan.direction === "decode") return (inputs) => decode(texts, data, inputs);
  const encoder = new TokenEncoder(texts, plan, { tokenizer, config });
  return (inputs) => encode(encoder, data, inputs);
}

async function readObject(path: string, isOptional = false): Promise<Record<string, unknown>> {
  let got: string;
  try {
    const text = await readFile(path, "utf8");
    assertJsonFits(text, path);
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value))
      return value as Record<string, unknown>;
    got = Array.isArray(value) ? "a list" : JSON.stringify(value);
  } catch (error) {
    if (TritonError.is(error)) throw error;
    if (isOptional && (error as NodeJS.ErrnoException).code === "ENOENT") return {};
    got = (error as Error).message;
  }
  throw errorFor("INVALID_MODEL", `cannot read ${path}: expected a JSON object, got ${got}`);
}

/** The rows of one request in a batch. */
function rowsOf(inputs: ReadonlyMap<string, Tensor>, first: number, count: number): Map<string, Tensor> {
  return new Map(
    [...inputs].map(([name, { datatype, shape, elements }]) => {
      const size = shape.slice(1).reduce((product, dim) => product * dim, 1);
      const own = elements.slice(first * size, (first + count) * size);
      return [name, Tensor.fromElements(datatype, [count, ...shape.slice(1)], own)];
    }),
  );
}

function* encode(
  encoder: TokenEncoder,
  { plan, hasBatch, hasLines }: TokenizerData,
  inputs: ReadonlyMap<string, Tensor>,
): Parts<Map<string, Tensor>> {
  const { inputNames, outputNames, dtype, pairTemplate } = plan;
  const tensors = inputNames.map((name) => inputs.get(name)!);
  const rows = hasBatch ? tensors[0]!.shape[0]! : 1;
  const counts = tensors.map(({ elements }) => elements.length / rows);
  const none = counts.indexOf(0);
  if (none >= 0) throw wrongInput(inputNames[none]!, undefined, "expected at least one text, got none");
  const count = Math.max(...counts);
  const other = counts.findIndex((one) => one !== count && one !== 1);
  if (other >= 0) {
    const got = `${counts[other]} beside ${count} of '${inputNames[1 - other]}'`;
    throw wrongInput(inputNames[other]!, undefined, `expected as many texts, or one, got ${got}`);
  }
  const texts: EncodedText[] = [];
  for (let line = 0; line < rows * count; line++) {
    const row = Math.floor(line / count);
    const parts = tensors.map(({ elements }, i) => {
      const place = row * counts[i]! + (counts[i] === 1 ? 0 : line % count);
      const text = textOf(
        elements[place] as Uint8Array,
        inputNames[i]!,
        elements.length === 1 ? undefined : place,
        plan,
      );
      return i === 1 && pairTemplate !== undefined ? pairTemplate.replaceAll("{}", () => text) : text;
    });
    texts.push(yield* encoder.encode(parts, rows * count === 1 ? undefined : line));
    yield;
  }
  const padded = encoder.pad(texts);
  const shape = [...(hasBatch ? [rows] : []), ...(hasLines ? [count] : []), padded.length];
  return new Map(
    outputNames.map((name) => [
      name,
      integers(dtype, shape, padded[name as keyof typeof padded] as readonly number[]),
    ]),
  );
}

function integers(
  dtype: TokenizerPlan["dtype"],
  shape: readonly number[],
  values: readonly number[],
): Tensor {
  const elements = dtype === "INT64" ? BigInt64Array.from(values, BigInt) : Int32Array.from(values);
  return Tensor.fromElements(dtype, shape, elements);
}

function textOf(
  bytes: Uint8Array,
  name: string,
  row: number | undefined,
  { maxBytes, allowEmpty }: TokenizerPlan,
): string {
  if (bytes.byteLength === 0 && !allowEmpty) {
    throw wrongInput(name, row, "expected a text, got an empty one; set allow_empty to encode it");
  }
  if (bytes.byteLength > maxBytes) {
    throw wrongInput(name, row, `expected a text of at most ${maxBytes} bytes, got ${bytes.byteLength}`);
  }
  try {
    return strictDecoder.decode(bytes);
  } catch {
    throw wrongInput(name, row, `expected UTF-8, got ${bytes.byteLength} bytes that are not`);
  }
}

const strictDecoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function* decode(
  tokenizer: TextTokenizer,
  { plan: { inputNames, outputNames, skipSpecialTokens }, textAxes }: TokenizerData,
  inputs: ReadonlyMap<string, Tensor>,
): Parts<Map<string, Tensor>> {
  const [name] = inputNames;
  const { shape, elements } = inputs.get(name!)!;
  // The last axis has the tokens of a text.
  const lines = shape.slice(0, -1).reduce((product, dim) => product * dim, 1);
  const count = shape.at(-1)!;
  const ids = Array.from(elements as ArrayLike<number | bigint>, Number);
  const texts: Buffer[] = [];
  for (let line = 0; line < lines; line++) {
    const own = ids.slice(line * count, (line + 1) * count);
    const strange = own.find((id) => tokenizer.tokens[id] === undefined);
    if (strange !== undefined) {
      const expected = `expected token numbers from 0 to ${tokenizer.tokens.length - 1}`;
      throw wrongInput(name!, lines === 1 ? undefined : line, `${expected}, got ${strange}`);
    }
    texts.push(Buffer.from(tokenizer.decode(own, !skipSpecialTokens)));
    yield;
  }
  const outer = shape.slice(0, -1);
  const textShape = outer.length === textAxes ? outer : [...outer, 1];
  return new Map([[outputNames[0]!, Tensor.fromElements("BYTES", textShape, texts)]]);
}

function wrongInput(name: string, row: number | undefined, text: string): TritonError {
  return errorFor("INVALID_INPUT", `input '${name}'${row === undefined ? "" : `, row ${row}`}: ${text}`);
}
