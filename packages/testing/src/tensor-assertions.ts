import { AssertionError } from "node:assert";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import {
  arrayDatatype,
  errorFor,
  isNdArray,
  type PlainTensor,
  plainTensor,
  Tensor,
  type Tolerance,
  TritonError,
  tensorDifference,
  tensorFromValue,
  tensorOfPlain,
} from "@tritonjs/protocol";

/** A tensor as tests have it: an ndarray of a result, a `Tensor`, or an expected value in any form. */
export type ComparedTensor = object | number | string | bigint | boolean;

/** Tensors by name, such as the result of `infer`. */
export type ComparedTensors = Readonly<Record<string, ComparedTensor | undefined>>;

/** Describes how two results differ, with the name of each output that does. Undefined if they do not. */
export function outputsDifference(
  actual: ComparedTensors,
  expected: ComparedTensors,
  tolerance: Tolerance = {},
): string | undefined {
  const names = new Set([...Object.keys(expected), ...Object.keys(actual)]);
  const lines = [...names].flatMap((name) => {
    if (expected[name] === undefined) return actual[name] === undefined ? [] : [`'${name}': not expected`];
    if (actual[name] === undefined) return [`'${name}': missing`];
    const difference = differenceOf(name, actual[name], expected[name], tolerance);
    return difference === undefined ? [] : [`'${name}': ${difference}`];
  });
  return lines.length === 0 ? undefined : lines.join("\n");
}

/** Compares one tensor. An expected value without a type of its own takes the type and the shape of the actual one. */
function differenceOf(
  name: string,
  actual: ComparedTensor,
  expected: ComparedTensor,
  tolerance: Tolerance,
): string | undefined {
  const got = tensorOf(actual);
  if (got === undefined) return `expected an ndarray or a Tensor, got ${typeof actual}`;
  try {
    const target = { what: `'${name}'`, datatype: got.datatype, shape: got.shape, takesScalar: true };
    return tensorDifference(got, tensorOf(expected) ?? tensorFromValue(expected, target), tolerance);
  } catch (error) {
    return TritonError.from(error).message;
  }
}

/** An ndarray or a `Tensor` as a tensor; undefined for other values. */
function tensorOf(value: ComparedTensor): Tensor | undefined {
  if (value instanceof Tensor) return value;
  if (typeof value !== "object" || !isNdArray(value)) return undefined;
  const datatype = arrayDatatype(value);
  return datatype && tensorFromValue(value, { what: "the ndarray", datatype, shape: value.shape });
}

/**
 * Throws an `AssertionError` if a result is not the expected one, for `node:test` and any other runner.
 *
 * @example
 * ```ts
 * assertTensors(await model.inferSample({ x: [1, 2] }), { y: [0.5, 0.25] }, { absolute: 1e-6 });
 * ```
 */
export function assertTensors(
  actual: ComparedTensors,
  expected: ComparedTensors,
  tolerance: Tolerance = {},
): void {
  const difference = outputsDifference(actual, expected, tolerance);
  if (difference === undefined) return;
  const message = `the tensors differ:\n${difference}`;
  throw new AssertionError({ message, actual, expected, operator: "assertTensors" });
}

/**
 * Types of the matchers, for the interfaces of vitest and of jest.
 *
 * @example
 * ```ts
 * declare module "vitest" {
 *   interface Matchers<T> extends TensorMatchers<T> {}
 * }
 * ```
 */
export interface TensorMatchers<R> {
  toMatchTensors(expected: ComparedTensors, tolerance?: Tolerance): R;
  toMatchTensor(expected: ComparedTensor, tolerance?: Tolerance): R;
  toMatchTensorSnapshot(file: string | URL, options?: SnapshotOptions): Promise<R>;
}

interface MatcherResult {
  readonly pass: boolean;
  readonly message: () => string;
}

/**
 * Matchers for `expect.extend` of vitest and of jest.
 *
 * @example
 * ```ts
 * expect.extend(tensorMatchers);
 * expect(await model.inferSample({ x: [1, 2] })).toMatchTensors({ y: [0.5, 0.25] }, { absolute: 1e-6 });
 * expect(y).toMatchTensor([0.5, 0.25]);
 * await expect(outputs).toMatchTensorSnapshot(new URL("./linear.json", import.meta.url), { relative: 1e-5 });
 * ```
 */
export const tensorMatchers = {
  /** Compares results: outputs by name. */
  toMatchTensors(
    received: ComparedTensors,
    expected: ComparedTensors,
    tolerance: Tolerance = {},
  ): MatcherResult {
    return matched(outputsDifference(received, expected, tolerance));
  },
  /** Compares one tensor. */
  toMatchTensor(
    received: ComparedTensor,
    expected: ComparedTensor,
    tolerance: Tolerance = {},
  ): MatcherResult {
    return matched(differenceOf("tensor", received, expected, tolerance));
  },
  /** Compares a result with the snapshot in a file. */
  async toMatchTensorSnapshot(
    received: ComparedTensors,
    file: string | URL,
    options: SnapshotOptions = {},
  ): Promise<MatcherResult> {
    return matched(await snapshotDifference(received, file, options));
  },
};

function matched(difference: string | undefined): MatcherResult {
  return {
    pass: difference === undefined,
    message: () =>
      difference === undefined ? "the tensors do not differ" : `the tensors differ:\n${difference}`,
  };
}

/** Options of a snapshot. */
export interface SnapshotOptions extends Tolerance {
  /**
   * Whether the file is written anew. @default true for a missing file, except where the variable `CI` is set, and with
   * the variable `UPDATE_TENSOR_SNAPSHOTS`
   */
  readonly update?: boolean;
}

/**
 * Compares a result with the snapshot in a file, for `node:test` and any other runner. A missing file is written.
 *
 * @throws AssertionError if they differ, or the file is missing where the variable `CI` is set.
 * @example
 * ```ts
 * await assertTensorSnapshot(outputs, new URL("./linear.json", import.meta.url), { relative: 1e-5 });
 * ```
 */
export async function assertTensorSnapshot(
  actual: ComparedTensors,
  file: string | URL,
  options: SnapshotOptions = {},
): Promise<void> {
  const difference = await snapshotDifference(actual, file, options);
  if (difference === undefined) return;
  const message = `the tensors differ from the snapshot ${pathOf(file)}:\n${difference}`;
  throw new AssertionError({ message, operator: "assertTensorSnapshot" });
}

const pathOf = (file: string | URL) => (typeof file === "string" ? file : fileURLToPath(file));

async function snapshotDifference(
  actual: ComparedTensors,
  file: string | URL,
  { update, ...tolerance }: SnapshotOptions,
): Promise<string | undefined> {
  const path = pathOf(file);
  const isForced = update ?? isSet(process.env.UPDATE_TENSOR_SNAPSHOTS);
  const text = isForced ? undefined : await readFile(path, "utf8").catch(unlessMissing);
  if (text !== undefined) return outputsDifference(actual, readSnapshot(path, text), tolerance);
  if (!isForced && (update === false || isSet(process.env.CI))) return `${path} does not exist`;
  const tensors = Object.entries(actual).flatMap(([name, value]) => {
    if (value === undefined) return [];
    const tensor = tensorOf(value);
    if (tensor === undefined) {
      throw errorFor(
        "INVALID_INPUT",
        `snapshot of '${name}': expected an ndarray or a Tensor, got ${typeof value}`,
      );
    }
    return [[name, plainTensor(tensor)] as const];
  });
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, `${JSON.stringify(Object.fromEntries(tensors), null, 2)}\n`);
  return undefined;
}

function unlessMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT") throw error;
}

const isSet = (value: string | undefined) =>
  value !== undefined && value !== "" && value !== "false" && value !== "0";

function readSnapshot(path: string, text: string): Record<string, Tensor> {
  let plain: Record<string, PlainTensor>;
  try {
    plain = JSON.parse(text) as Record<string, PlainTensor>;
  } catch (cause) {
    throw errorFor("INVALID_INPUT", `cannot read the snapshot ${path}: ${(cause as Error).message}`, {
      cause,
    });
  }
  const tensors = Object.entries(plain);
  return Object.fromEntries(tensors.map(([name, one]) => [name, tensorOfPlain(one, `'${name}' in ${path}`)]));
}
