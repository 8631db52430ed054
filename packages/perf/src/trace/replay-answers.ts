import { stat } from "node:fs/promises";
import { agrees, largestDifference, type OutputComparison } from "@tritonjs/operations/rollout";
import { type DataType, errorFor, isDataType, Tensor, TritonError } from "@tritonjs/protocol";
import { serviceOf } from "@tritonjs/server";
import { repositoryServer } from "../command/repository-server.js";
import { readyOrClosed } from "../perf/open-target.js";

/** A captured request, as a file has it. */
export interface CaptureRow {
  readonly model: string;
  readonly version: number;
  readonly id: string;
  readonly parameters: Readonly<Record<string, string | number | boolean>>;
  readonly inputs: ReadonlyMap<string, Tensor>;
  readonly outputs: ReadonlyMap<string, Tensor>;
  /** Error with which the request ended; undefined for none. */
  readonly error: string | undefined;
}

/** The part of `hyparquet` that is used. */
interface ParquetReader {
  asyncBufferFromFile(path: string): Promise<unknown>;
  parquetReadObjects(options: { file: unknown; utf8: boolean }): Promise<Record<string, unknown>[]>;
}

/**
 * Reads files that `capture()` of `@tritonjs/operations/capture` has written.
 *
 * @throws TritonError UNAVAILABLE without the package `hyparquet`, INVALID_ARG for a file that is not a capture
 */
export async function readCapture(paths: readonly string[]): Promise<CaptureRow[]> {
  const reader = await loadReader();
  const rows: CaptureRow[] = [];
  for (const path of paths) {
    let found: Record<string, unknown>[];
    try {
      found = await reader.parquetReadObjects({ file: await reader.asyncBufferFromFile(path), utf8: false });
    } catch (error) {
      throw badFile(path, TritonError.from(error).message);
    }
    for (const row of found) rows.push(rowOf(path, row));
  }
  return rows;
}

async function loadReader(): Promise<ParquetReader> {
  try {
    return (await import("hyparquet")) as unknown as ParquetReader;
  } catch (cause) {
    throw errorFor(
      "PACKAGE_NOT_INSTALLED",
      "cannot load hyparquet, which reads captures: install it next to @tritonjs/perf",
      { cause },
    );
  }
}

function badFile(path: string, why: string): TritonError {
  return new TritonError("INVALID_ARG", `cannot read the capture ${path}: ${why}`);
}

function rowOf(path: string, row: Record<string, unknown>): CaptureRow {
  const { model, version, id, error, parameters } = row;
  if (typeof model !== "string" || typeof version !== "number") {
    throw badFile(path, "expected the columns 'model' and 'version' of a capture");
  }
  return {
    model,
    version,
    id: String(id ?? ""),
    error: typeof error === "string" ? error : undefined,
    parameters: typeof parameters === "string" ? JSON.parse(parameters) : {},
    inputs: tensorsOf(path, row, "input."),
    outputs: tensorsOf(path, row, "output."),
  };
}

function tensorsOf(path: string, row: Record<string, unknown>, prefix: string): Map<string, Tensor> {
  const tensors = new Map<string, Tensor>();
  for (const [column, bytes] of Object.entries(row)) {
    if (!column.startsWith(prefix) || !(bytes instanceof Uint8Array)) continue;
    const [datatype, shape] = [row[`${column}.datatype`], row[`${column}.shape`]];
    if (!isDataType(datatype) || typeof shape !== "string") {
      throw badFile(path, `expected the data type and shape of column '${column}'`);
    }
    // A file may have its bytes at any offset, where elements cannot be read.
    tensors.set(
      column.slice(prefix.length),
      Tensor.fromBytes(datatype, JSON.parse(shape) as number[], bytes.slice()),
    );
  }
  return tensors;
}

/** Result of a replayed request: its outputs, or the text of its error. */
export type ReplayedAnswer = ReadonlyMap<string, Tensor> | string;

/** Where captured requests are sent again. */
export interface AnswerTarget {
  send(row: CaptureRow): Promise<ReplayedAnswer>;
  close(): Promise<void>;
}

/**
 * Opens a server by its URL (`http://`, `https://`, `grpc://`), or the model repository in a directory, whose models run
 * in this process.
 *
 * @param version version that answers: a number, `captured` for that of the capture, or empty for the server's choice
 * @throws TritonError INVALID_ARG for anything else
 */
export async function openAnswerTarget(
  against: string,
  models: readonly string[],
  version: string,
): Promise<AnswerTarget> {
  const versionOf = (row: CaptureRow) => (version === "captured" ? String(row.version) : version);
  if (/^\w+:\/\//.test(against)) return openServer(against, versionOf);
  const found = await stat(against).catch(() => undefined);
  if (found?.isDirectory() !== true) {
    throw new TritonError(
      "INVALID_ARG",
      `--against: expected a URL or the directory of a model repository, got '${against}'`,
    );
  }
  return openRepository(against, models, versionOf);
}

async function openServer(url: string, versionOf: (row: CaptureRow) => string): Promise<AnswerTarget> {
  const isGrpc = url.startsWith("grpc://");
  const { InferenceServerClient } = isGrpc
    ? await import("@tritonjs/client/grpc")
    : await import("@tritonjs/client/http");
  const client = new InferenceServerClient(isGrpc ? url.slice("grpc://".length) : url);
  return {
    async send(row) {
      const inputs = Object.fromEntries(
        [...row.inputs].map(([name, { datatype, shape, elements }]) => [
          name,
          { datatype: datatype as DataType, shape: [...shape], data: elements },
        ]),
      );
      try {
        const call = { id: row.id, inputs, parameters: row.parameters, modelVersion: versionOf(row) };
        return (await client.infer(row.model, call as never)).tensors;
      } catch (error) {
        return failure(error);
      }
    },
    close: async () => client.close(),
  };
}

async function openRepository(
  path: string,
  models: readonly string[],
  versionOf: (row: CaptureRow) => string,
): Promise<AnswerTarget> {
  const { Exchange } = await import("@tritonjs/server");
  const triton = await readyOrClosed(
    repositoryServer(
      { modelRepository: path, modelControlMode: "explicit", loadModel: [...models] },
      { logInfo: false, allowCpuMetrics: false },
    ),
  );
  const service = serviceOf(triton);
  return {
    async send({ model, ...row }) {
      try {
        const exchange = new Exchange(service, undefined, service.model(model, versionOf({ model, ...row })));
        const { id, inputs, parameters } = row;
        return (await exchange.single({ id, inputs, parameters })).outputs;
      } catch (error) {
        return failure(error);
      }
    },
    close: () => triton.close(),
  };
}

function failure(error: unknown): string {
  const { code, message } = TritonError.from(error);
  return `${code}: ${message}`;
}

/** The differences of one output in one slice of the requests. */
export interface OutputDifferences {
  readonly model: string;
  readonly output: string;
  /** `all`, or the value of the slice: `parameter:country=de`. */
  readonly slice: string;
  readonly compared: number;
  /** Answers with the same bytes. */
  equal: number;
  /** Answers that agree by the comparison. */
  agreeing: number;
  /** Largest distance of two numbers; undefined for strings. */
  largest: number | undefined;
  /** Ids, or numbers in the capture, of the first requests that disagree. */
  readonly examples: string[];
}

/** The result of sending captured requests again. */
export interface AnswersReport {
  readonly against: string;
  readonly requests: number;
  /** Requests that failed now and not before, or before and not now, with their texts. */
  readonly errors: readonly { readonly request: string; readonly before: string; readonly now: string }[];
  readonly differences: readonly OutputDifferences[];
  /** True if all requests have agreeing answers, or failed both times. */
  readonly agrees: boolean;
}

/** Options of {@link replayAnswers}. */
export interface ReplayAnswersOptions {
  /** How answers are compared. @default floating-point numbers within 1e-5 and a thousandth, all others equal */
  readonly by?: OutputComparison | undefined;
  /** Property that divides the requests: `rows`, `version`, or `parameter:<name>`. */
  readonly slices?: readonly string[];
  /** Requests in flight. @default 4 */
  readonly concurrency?: number;
  readonly signal?: AbortSignal;
}

const MOST_EXAMPLES = 5;

/** Sends captured requests again, and compares the answers with those of the capture. */
export async function replayAnswers(
  rows: readonly CaptureRow[],
  target: AnswerTarget,
  against: string,
  { by, slices = [], concurrency = 4, signal }: ReplayAnswersOptions = {},
): Promise<AnswersReport> {
  const answers = new Array<ReplayedAnswer>(rows.length);
  let next = 0;
  const work = async () => {
    while (next < rows.length && !signal?.aborted) {
      const index = next++;
      answers[index] = await target.send(rows[index]!);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, work));
  // A request may have failed with others of its batch.
  for (const [index, row] of rows.entries()) {
    if (typeof answers[index] !== "string" || row.error !== undefined || signal?.aborted) continue;
    answers[index] = await target.send(row);
  }
  const differences = new Map<string, OutputDifferences & { compared: number }>();
  const errors: { request: string; before: string; now: string }[] = [];
  let agreesAll = true;
  let requests = 0;
  for (const [index, row] of rows.entries()) {
    const answer = answers[index];
    if (answer === undefined) continue;
    requests++;
    const request = row.id === "" ? `#${index + 1}` : row.id;
    if (typeof answer === "string" || row.error !== undefined) {
      if (typeof answer === "string" && row.error !== undefined) continue;
      errors.push({
        request,
        before: row.error ?? "an answer",
        now: typeof answer === "string" ? answer : "an answer",
      });
      agreesAll = false;
      continue;
    }
    for (const [output, old] of row.outputs) {
      const fresh = answer.get(output);
      const agreeing = fresh !== undefined && agrees(old, fresh, output, by);
      if (!agreeing) agreesAll = false;
      const equal = fresh !== undefined && agrees(old, fresh, output, "equal");
      const distance = fresh && largestDifference(old, fresh);
      for (const slice of ["all", ...slices.map((name) => sliceOf(name, row))]) {
        const key = JSON.stringify([row.model, output, slice]);
        let one = differences.get(key);
        if (one === undefined) {
          one = {
            model: row.model,
            output,
            slice,
            compared: 0,
            equal: 0,
            agreeing: 0,
            largest: undefined,
            examples: [],
          };
          differences.set(key, one);
        }
        one.compared++;
        if (equal) one.equal++;
        if (agreeing) one.agreeing++;
        else if (one.examples.length < MOST_EXAMPLES) one.examples.push(request);
        if (distance !== undefined) one.largest = Math.max(one.largest ?? 0, distance);
      }
    }
  }
  return { against, requests, errors, differences: [...differences.values()], agrees: agreesAll };
}

function sliceOf(name: string, { version, inputs, parameters }: CaptureRow): string {
  if (name === "version") return `version=${version}`;
  if (name === "rows") return `rows=${[...inputs.values()][0]?.shape[0] ?? 0}`;
  const parameter = name.slice("parameter:".length);
  return `${name}=${parameters[parameter] ?? "none"}`;
}

/** The report as text. */
export function answersText({ against, requests, errors, differences }: AnswersReport): string {
  const lines = [`${requests} requests against ${against}`];
  for (const { model, output, slice, compared, equal, agreeing, largest, examples } of differences) {
    const distance = largest === undefined ? "" : `, largest difference ${Number(largest.toPrecision(3))}`;
    lines.push(
      `  ${model}, output ${output}, ${slice}: ${agreeing} of ${compared} agree, ${equal} are equal${distance}` +
        (examples.length === 0 ? "" : `; disagreeing: ${examples.join(", ")}`),
    );
  }
  for (const { request, before, now } of errors.slice(0, MOST_EXAMPLES)) {
    lines.push(`  request ${request}: before ${before}, now ${now}`);
  }
  if (errors.length > MOST_EXAMPLES)
    lines.push(`  and ${errors.length - MOST_EXAMPLES} more with another end`);
  return `${lines.join("\n")}\n`;
}
