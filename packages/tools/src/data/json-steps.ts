import { readFile } from "node:fs/promises";
import type { ExpectedOutput } from "./data-set.js";
import type { GivenShapes } from "./input-shapes.js";
import { invalidOption } from "./invalid-option.js";
import { parseDataFile } from "./json-text.js";
import type { Step } from "./steps.js";
import { readInput, readOutput, textOf } from "./tensor-reader.js";
import type { TestedModel } from "./tested-model.js";

/** What reading a file depends on. */
export interface StepRules {
  readonly model: TestedModel;
  readonly shapes: GivenShapes;
  readonly fixedSchedule: boolean;
}

type Entry = Readonly<Record<string, unknown>>;

/**
 * Reads `{"data": […], "validation_data": […]}`. Entries are rows of one stream, or lists of rows, a stream each.
 *
 * @throws TritonError INVALID_ARG that names the file, the entry and the input.
 */
export async function stepsOfFile(path: string, rules: StepRules): Promise<(readonly Step[])[]> {
  const file = parseDataFile(await readFile(path, "utf8"), path);
  const { data, validation_data: validation } = (isEntry(file) ? file : {}) as Record<string, unknown>;
  if (!Array.isArray(data))
    throw invalidOption(`${path}: expected an object with a list "data", got ${textOf(file)}`);
  const streams = streamsOf(data, `${path}: data`);
  const expected =
    validation === undefined ? undefined : streamsOf(listOf(validation, path), `${path}: validation_data`);
  if (expected !== undefined && !haveEqualLengths(streams, expected))
    throw invalidOption(
      `${path}: validation_data: expected the streams and entries of data, got other numbers of them`,
    );
  const hasStreams = Array.isArray(data[0]);
  return streams.map((entries, stream) =>
    entries.map((entry, index) => {
      const where = `${path}: data${hasStreams ? `[${stream}]` : ""}[${index}]`;
      return stepOf(entry, expected?.[stream]?.[index], where, rules);
    }),
  );
}

function listOf(value: unknown, path: string): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw invalidOption(`${path}: validation_data: expected a list, got ${textOf(value)}`);
}

function streamsOf(entries: readonly unknown[], where: string): (readonly Entry[])[] {
  const lists = entries.filter(Array.isArray);
  if (lists.length > 0 && lists.length < entries.length)
    throw invalidOption(`${where}: expected entries that are all objects, or all lists of objects, got both`);
  const streams = lists.length > 0 ? (entries as readonly (readonly unknown[])[]) : [entries];
  return streams.map((stream) =>
    stream.map((entry, i) => {
      if (isEntry(entry)) return entry;
      throw invalidOption(`${where}[${i}]: expected an object, got ${textOf(entry)}`);
    }),
  );
}

const isEntry = (value: unknown): value is Entry =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const haveEqualLengths = (a: readonly (readonly unknown[])[], b: readonly (readonly unknown[])[]): boolean =>
  a.length === b.length && a.every((stream, i) => stream.length === b[i]!.length);

function stepOf(entry: Entry, validation: Entry | undefined, where: string, rules: StepRules): Step {
  const { model, shapes, fixedSchedule } = rules;
  const { timestamp, ...tensors } =
    Object.hasOwn(entry, "timestamp") && !isInput(model, "timestamp")
      ? entry
      : { ...entry, timestamp: undefined };
  const unknown = Object.keys(tensors).find((name) => !isInput(model, name));
  if (unknown !== undefined)
    throw invalidOption(
      `${where}: expected inputs of model '${model.name}' (${namesOf(model)}), got '${unknown}'`,
    );
  const inputs = model.inputs.flatMap((input) => {
    if (Object.hasOwn(tensors, input.name))
      return [[input.name, readInput(input, tensors[input.name], shapes, where)] as const];
    if (input.optional) return [];
    throw invalidOption(
      `${where}: expected data for input '${input.name}' of model '${model.name}', got none`,
    );
  });
  return {
    inputs: new Map(inputs),
    expected: validation && expectedOf(validation, where.replace(": data", ": validation_data"), model),
    timestampMs: fixedSchedule ? timestampOf(timestamp, where) : undefined,
    where,
  };
}

const isInput = ({ inputs }: TestedModel, name: string): boolean =>
  inputs.some((input) => input.name === name);

const namesOf = ({ inputs }: TestedModel): string => inputs.map(({ name }) => `'${name}'`).join(", ");

function expectedOf(validation: Entry, where: string, model: TestedModel): readonly ExpectedOutput[] {
  return Object.entries(validation).map(([name, value]) => {
    const output = model.outputs.find((one) => one.name === name);
    if (output === undefined) {
      const known = model.outputs.map((one) => `'${one.name}'`).join(", ");
      throw invalidOption(`${where}: expected outputs of model '${model.name}' (${known}), got '${name}'`);
    }
    return { ...output, bytes: readOutput(output.datatype, value, `${where}: output '${name}'`) };
  });
}

/** The time of an entry: `[12.5]` or `12.5`, in milliseconds. */
export function timestampOf(value: unknown, where: string): number {
  const time = Array.isArray(value) && value.length === 1 ? value[0] : value;
  if (typeof time === "number" && Number.isFinite(time) && time >= 0) return time;
  throw invalidOption(`${where}: "timestamp": expected milliseconds from the start, got ${textOf(value)}`);
}
