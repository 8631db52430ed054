import { readFileSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { DescribedTensor } from "@tritonjs/protocol";
import {
  type ByteSource,
  bytesSource,
  fieldText,
  fileSource,
  messages,
  type Span,
  textIn,
  walkMessage,
} from "./onnx-file.js";

/** The field numbers of onnx.proto that this file reads. */
const MODEL = { graph: 7, operatorSet: 8, metadata: 14 };
const OPERATOR_SET = { domain: 1 };
const GRAPH = { node: 1, initializer: 5 };
const NODE = { input: 1, operator: 4, attribute: 5 };
const ATTRIBUTE = { name: 1, ints: 8, strings: 9 };
const TENSOR = { strings: 6, name: 8 };
const ENTRY = { key: 1, value: 2 };

/** Keys of metadata that hold the names of classes: those of Ultralytics, and others that exporters write. */
const METADATA_KEYS = ["names", "classes", "class_names", "labels", "id2label"];

/** Operators of scikit-learn's and other exporters whose attributes hold names of classes. */
const CLASSIFIERS = ["ZipMap", "LinearClassifier", "SVMClassifier", "TreeEnsembleClassifier", "LabelEncoder"];

/** Operators that choose the name of a class from a constant. */
const CHOOSERS = ["ArrayFeatureExtractor", "Gather"];

/** Bytes of the longest text or file that is read. */
const MAX_BYTES = 4 << 20;

/**
 * Adds the names of classes to the output that scores them: the only floating-point output with one element of a row for
 * each name. No output gets names if none or several fit.
 */
export function withClassNames(
  outputs: readonly DescribedTensor[],
  classNames: readonly (readonly string[])[],
): readonly DescribedTensor[] {
  for (const labels of classNames) {
    const scoring = outputs.filter((output) => scoresOfRow(output) === labels.length);
    if (scoring.length !== 1) continue;
    return outputs.map((output) => (output === scoring[0] ? { ...output, labels } : output));
  }
  return outputs;
}

/** Elements of one row of floating-point numbers; undefined for other tensors and variable sizes. */
function scoresOfRow({ dtype, shape, rankUnknown }: DescribedTensor): number | undefined {
  if (rankUnknown === true || !/^(FP|BF)/.test(dtype)) return undefined;
  const hasRows = shape.length > 1 && (shape[0] === -1 || shape[0] === 1);
  const dims = hasRows ? shape.slice(1) : shape;
  return dims.length === 0 || dims.includes(-1) ? undefined : dims.reduce((product, dim) => product * dim, 1);
}

/**
 * Reads the lists of class names that come with an ONNX model, the most reliable first: of its metadata, of its
 * operators, and of `config.json` of Hugging Face in the same folder. A list that cannot be read is left out.
 */
export function readClassNames(model: string | Uint8Array): readonly (readonly string[])[] {
  const source = typeof model === "string" ? fileSource(model) : bytesSource(model);
  try {
    const found = [
      ...namesOfMetadata(source),
      ...namesOfOperators(source),
      ...(typeof model === "string" ? namesOfConfig(configBeside(model)) : []),
    ];
    return found.filter((names) => names.length > 1);
  } catch (error) {
    // The reader of the tensors reports a broken file.
    if (error instanceof RangeError) return [];
    throw error;
  } finally {
    source.close();
  }
}

function namesOfMetadata(source: ByteSource): string[][] {
  const entries = messages(source, 0, source.length, MODEL.metadata).filter(isShort);
  const texts = new Map(
    entries.map(
      (entry) => [fieldText(source, entry, ENTRY.key), fieldText(source, entry, ENTRY.value)] as const,
    ),
  );
  return METADATA_KEYS.flatMap((key) => namesOfText(texts.get(key) ?? "") ?? []);
}

const isShort = ({ start, end }: Span) => end - start <= MAX_BYTES;

/** A literal of Python or JSON: a string or a number, or a mark between them. */
const LITERAL = /\s*(?:u?('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|(\d+)|([{}[\](),:]))\s*/y;

/**
 * Reads names from a list, or from an object with the indices as keys, as Python and JSON write them, or from lines or
 * words between commas.
 *
 * @returns the names in a list; undefined for any other text
 */
export function namesOfText(given: string): [string[]] | undefined {
  const trimmed = given.trim();
  if (!/^[{[(]/.test(trimmed)) {
    const names = trimmed.includes("\n")
      ? trimmed.split(/\r?\n/)
      : trimmed.split(",").map((name) => name.trim());
    return names.length > 1 && !/[[\]{}]/.test(trimmed) ? [names] : undefined;
  }
  const names: string[] = [];
  let index: string | undefined;
  let isKey = trimmed.startsWith("{");
  let at = 1;
  while (at < trimmed.length - 1) {
    LITERAL.lastIndex = at;
    const match = LITERAL.exec(trimmed);
    if (match === null) return undefined;
    at = LITERAL.lastIndex;
    const [, quoted, digits, mark] = match;
    if (mark === ",") isKey = trimmed.startsWith("{");
    else if (mark === ":" && index !== undefined) isKey = false;
    else if (mark !== undefined) return undefined;
    else if (isKey) index = digits ?? unquoted(quoted!);
    else if (quoted === undefined) return undefined;
    else names[trimmed.startsWith("{") ? Number(index) : names.length] = unquoted(quoted);
  }
  return isComplete(names) ? [names] : undefined;
}

/** Whether a list has a name at each place, and nothing else. */
function isComplete(names: readonly string[]): boolean {
  return Object.keys(names).length === names.length;
}

const ESCAPES: Readonly<Record<string, string>> = {
  a: "\u0007",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
};

function unquoted(literal: string): string {
  const escapes = /\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8})|(.))/gis;
  return literal
    .slice(1, -1)
    .replace(escapes, (_, byte?: string, unit?: string, point?: string, other?: string) => {
      if (other !== undefined) return ESCAPES[other] ?? other;
      const code = Number.parseInt(byte ?? unit ?? point!, 16);
      return point === undefined || code > 0x10_ffff ? String.fromCharCode(code) : String.fromCodePoint(code);
    });
}

function namesOfOperators(source: ByteSource): string[][] {
  const sets = messages(source, 0, source.length, MODEL.operatorSet);
  if (!sets.some((set) => fieldText(source, set, OPERATOR_SET.domain) === "ai.onnx.ml")) return [];
  const graph = messages(source, 0, source.length, MODEL.graph)[0];
  if (graph === undefined) return [];
  const found: string[][] = [];
  const chosenFrom = new Set<string>();
  for (const node of messages(source, graph.start, graph.end, GRAPH.node)) {
    const operator = fieldText(source, node, NODE.operator);
    if (CLASSIFIERS.includes(operator)) found.push(...namesOfAttributes(source, node));
    else if (CHOOSERS.includes(operator)) chosenFrom.add(fieldText(source, node, NODE.input));
  }
  if (chosenFrom.size === 0) return found;
  for (const tensor of messages(source, graph.start, graph.end, GRAPH.initializer)) {
    if (!chosenFrom.has(fieldText(source, tensor, TENSOR.name))) continue;
    found.push(stringsIn(source, tensor, TENSOR.strings));
  }
  return found;
}

function stringsIn(source: ByteSource, span: Span, field: number): string[] {
  return messages(source, span.start, span.end, field)
    .filter(isShort)
    .map((one) => textIn(source, one));
}

/** The names of a classifier, or of an encoder from indices to names. */
function namesOfAttributes(source: ByteSource, node: Span): string[][] {
  const attributes = new Map<string, Span>();
  for (const attribute of messages(source, node.start, node.end, NODE.attribute)) {
    attributes.set(fieldText(source, attribute, ATTRIBUTE.name), attribute);
  }
  const strings = (name: string) => {
    const attribute = attributes.get(name);
    return attribute === undefined ? [] : stringsIn(source, attribute, ATTRIBUTE.strings);
  };
  const ints = (name: string) => {
    const attribute = attributes.get(name);
    return attribute === undefined ? [] : intsIn(source, attribute);
  };
  const keys = ints("keys_int64s");
  const encoded: string[] = [];
  for (const [i, name] of strings("values_strings").entries()) encoded[keys[i] ?? encoded.length] = name;
  const numbers = [...ints("classlabels_int64s"), ...ints("classlabels_ints")];
  const counted = numbers.every((number, i) => number === i);
  return [
    strings("classlabels_strings"),
    ...(counted ? [] : [numbers.map(String)]),
    ...(keys.length > 0 && isComplete(encoded) ? [encoded] : []),
    strings("classes_strings"),
  ];
}

/** Integers of an attribute. A negative one is not exact here, and makes all of them useless. */
function intsIn(source: ByteSource, attribute: Span): number[] {
  const found: number[] = [];
  for (const field of walkMessage(source, attribute.start, attribute.end)) {
    if (field.number !== ATTRIBUTE.ints) continue;
    if ("value" in field) found.push(field.value);
    else found.push(...varints(source.read(field.start, field.end - field.start)));
  }
  return found.every(Number.isSafeInteger) ? found : [];
}

/** Numbers of a packed field. */
function varints(bytes: Uint8Array): number[] {
  const found: number[] = [];
  let value = 0;
  let factor = 1;
  for (const byte of bytes) {
    value += (byte & 0x7f) * factor;
    factor *= 128;
    if (byte >= 0x80) continue;
    found.push(value);
    [value, factor] = [0, 1];
  }
  return found;
}

/** `config.json` in the folder of a graph, or in the folder around `onnx`. */
export function configBeside(model: string): string {
  const folder = dirname(model);
  return join(basename(folder) === "onnx" ? dirname(folder) : folder, "config.json");
}

function namesOfConfig(path: string): string[][] {
  let config: unknown;
  try {
    const found = statSync(path);
    if (!found.isFile() || found.size > MAX_BYTES) return [];
    config = JSON.parse(readFileSync(path, "utf8"));
  } catch {
    return [];
  }
  const names: string[] = [];
  for (const [index, name] of Object.entries(Object(Object(config).id2label) as object)) {
    if (typeof name !== "string" || !/^\d+$/.test(index)) return [];
    names[Number(index)] = name;
  }
  return isComplete(names) ? [names] : [];
}
