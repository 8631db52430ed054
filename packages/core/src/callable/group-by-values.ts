import { type TensorSpec, TritonError } from "@tritonjs/protocol";
import type { NdArray } from "ndarray";

import { type DecoratesMethod, type DecoratorArguments, decorate } from "./decorate.js";
import type { InferContext } from "./infer-context.js";
import { type AnyTensorFunc, type DecoratedTensorFunc, isGenerator, type TensorFunc } from "./infer-func.js";
import { outputArrays } from "./output-arrays.js";
import { type InputArrays, mergeRows, rowKey, takeRows } from "./rows.js";
import { TRITON_CONTEXT } from "./triton-context.js";

/** Outputs of one group of rows, by name. */
export type GroupOutputs = Readonly<Record<string, NdArray>>;

/** Brings the outputs of all groups to the same shape, except for the number of rows. */
export type GroupPadFunction = (groups: readonly GroupOutputs[]) => readonly GroupOutputs[];

/** Options of `groupByValues`. */
export interface GroupByValuesOptions {
  /** Pads outputs whose shapes differ between groups: `constantPadder()`. @default none: shapes must not differ */
  readonly padFn?: GroupPadFunction;
}

/** Result of `groupByValues`: wraps a function of tensors, or decorates a method. */
export interface GroupByValues extends DecoratesMethod {
  <const I extends readonly TensorSpec[], const O extends readonly TensorSpec[]>(
    fn: AnyTensorFunc<I, O>,
  ): DecoratedTensorFunc<I, O>;
}

/**
 * Groups the rows of a batch by the values of the inputs named `keys`, and calls the callback once for each group. The
 * outputs are returned in the order of the rows. Place it inside `batch`.
 *
 * @throws Error around `batch`, and around a generator function.
 * @example
 * ```ts
 * const inferFunc = batch(
 *   groupByValues("temperature", { padFn: constantPadder(0) })(({ tokens, temperature }) => ({
 *     tokens: generate(tokens, temperature.data[0]), // [rows, -1]: as long as the longest of the group
 *   })),
 * );
 * ```
 */
export function groupByValues(...keysAndOptions: readonly (string | GroupByValuesOptions)[]): GroupByValues {
  const keys = keysAndOptions.filter((key) => typeof key === "string");
  const options = keysAndOptions.find((one) => typeof one === "object");
  return ((...given: DecoratorArguments) =>
    decorate({ name: "groupByValues", keys }, given, (wrapped) => {
      const fn = wrapped as TensorFunc<[], []>;
      if (isGenerator(fn))
        throw new Error("The @groupByValues decorator cannot be used with a generator function.");
      return function (this: unknown, inputs: InputArrays, inferContext: InferContext) {
        const groups = groupRows(inputs, keys);
        if (groups.length <= 1) return fn.call(this, inputs, inferContext);
        return runGroups(
          (part) => fn.call(this, part, inferContext),
          inputs,
          groups,
          inferContext,
          options?.padFn,
        );
      };
    })) as GroupByValues;
}

/** Indices of the rows of each group, ordered by the first row of the group. */
function groupRows(inputs: InputArrays, keys: readonly string[]): number[][] {
  const rows = Object.entries(inputs).find(([name]) => name !== TRITON_CONTEXT)?.[1].shape[0] ?? 0;
  const groups = new Map<string, number[]>();
  for (let row = 0; row < rows; row++) {
    // A missing optional input is missing in all rows.
    const key = keys.map((name) => (inputs[name] === undefined ? "" : rowKey(inputs[name], row))).join("|");
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [row]);
    else group.push(row);
  }
  return [...groups.values()];
}

async function runGroups(
  run: (inputs: InputArrays) => unknown,
  inputs: InputArrays,
  groups: readonly (readonly number[])[],
  { modelConfig }: InferContext,
  padFn: GroupPadFunction | undefined,
): Promise<unknown> {
  let outputs: readonly GroupOutputs[] = [];
  for (const rows of groups) {
    const entries = Object.entries(inputs).map(([name, values]) => [
      name,
      name === TRITON_CONTEXT ? values : takeRows(values, rows),
    ]);
    const value = await run(Object.fromEntries(entries) as InputArrays);
    outputs = [...outputs, outputArrays(value, modelConfig, rows.length)];
  }
  if (padFn !== undefined) outputs = padFn(outputs);
  const merged: Record<string, NdArray> = {};
  for (const name of Object.keys(outputs[0] ?? {})) {
    const parts = outputs.map((group) => group[name]);
    if (parts.some((part) => part === undefined)) {
      throw new TritonError(
        "INTERNAL",
        `output '${name}' is missing from some groups of @groupByValues: return it for all of them`,
        { reason: "INVALID_OUTPUT" },
      );
    }
    assertAlike(name, parts as NdArray[]);
    merged[name] = mergeRows(parts as NdArray[], groups);
  }
  return merged;
}

function assertAlike(name: string, parts: readonly NdArray[]): void {
  const shapes = [...new Set(parts.map((part) => `[${part.shape.slice(1).join()}]`))];
  if (shapes.length === 1) return;
  throw new TritonError(
    "INTERNAL",
    `output '${name}' has rows of different shapes ${shapes.join(" and ")} in the groups of @groupByValues; ` +
      "give a padFn that makes them equal",
    { reason: "INVALID_OUTPUT" },
  );
}
