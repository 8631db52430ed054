import { elementCount, errorFor, Tensor, type TritonError } from "@tritonjs/protocol";
import { getHeapStatistics } from "#host";
import type { ExecutableRequest } from "../request-info.js";
import type { Clock } from "../system/clock.js";
import type { ExecutionResult } from "./backend.js";

/*
 * The elements of long BYTES inputs, which callbacks of this thread see as one object for each string. A few kilobytes
 * on the wire may become millions of objects. All executions together hold at most half of the heap of the thread in
 * such objects: more would end the process.
 *
 *     wire form --> room in the heap --> objects --> callback --> outputs, in wire form again
 *                   (in order of arrival)
 */

/** Bytes of a BYTES tensor from which its elements count, and are made in turns of the event loop. */
const LONG_STRINGS_BYTES = 64 * 1024;

/** Milliseconds of one turn of the event loop in which elements are made. */
const ELEMENTS_MS = 5;

/** Bytes of heap that an element takes: the view, and its place in the list. */
const HEAP_BYTES_OF_ELEMENT = 128;

type NamedTensor = readonly [name: string, tensor: Tensor];

export const NO_TENSORS: readonly NamedTensor[] = [];

/** The long BYTES inputs of requests that are still in wire form. */
export function longStrings(requests: readonly Pick<ExecutableRequest, "inputs">[]): readonly NamedTensor[] {
  let found = NO_TENSORS;
  for (const { inputs } of requests) {
    for (const [name, tensor] of inputs) {
      if (tensor.datatype !== "BYTES" || tensor.hasElements || tensor.byteLength < LONG_STRINGS_BYTES)
        continue;
      found = [...found, [name, tensor]];
    }
  }
  return found;
}

/** Elements that executions of this thread hold. */
let held = 0;
const waiting: { readonly count: number; readonly enter: () => void }[] = [];

/** Most elements that all executions together hold: they take half of the heap. */
function mostElements(): number {
  return Math.floor(getHeapStatistics().heap_size_limit / 2 / HEAP_BYTES_OF_ELEMENT);
}

/**
 * Runs a callback once there is room for the elements of long inputs, which it makes before. The room is given back when
 * the callback has returned.
 *
 * @returns its results, with long outputs in wire form
 * @throws TritonError INVALID_ARG for elements that take more than half of the heap, or for which a model that has room
 * would have to wait because it calls this one.
 */
export async function withRoomForStrings<R extends readonly ExecutionResult[] | undefined>(
  model: string,
  tensors: readonly NamedTensor[],
  {
    requests,
    clock,
  }: {
    readonly requests: readonly Pick<ExecutableRequest, "callers">[];
    readonly clock: Pick<Clock, "now" | "defer">;
  },
  run: () => Promise<R>,
): Promise<R> {
  const count = countElements(model, tensors);
  const isNested = requests.some(({ callers }) => callers !== undefined && callers.length > 0);
  if (fits(count) && (isNested || waiting.length === 0)) held += count;
  else if (isNested) throw tooMany(model, tensors[0]![0], mostElements() - held, count);
  else await new Promise<void>((enter) => waiting.push({ count, enter }));
  try {
    await makeElements(tensors, clock);
    return (await run())?.map(inWireForm) as unknown as R;
  } finally {
    leave(count);
  }
}

function leave(count: number): void {
  held -= count;
  for (let next = waiting[0]; next !== undefined && fits(next.count); next = waiting[0]) {
    waiting.shift();
    held += next.count;
    next.enter();
  }
}

function fits(count: number): boolean {
  return held === 0 || held + count <= mostElements();
}

function countElements(model: string, tensors: readonly NamedTensor[]): number {
  const most = mostElements();
  let count = 0;
  for (const [name, { shape }] of tensors) {
    count += elementCount(shape);
    if (count > most) throw tooMany(model, name, most, count);
  }
  return count;
}

function tooMany(model: string, name: string, most: number, count: number): TritonError {
  return errorFor(
    "REQUEST_TOO_LARGE",
    `model '${model}', input '${name}': expected at most ${most} strings, which take half of the heap of this ` +
      `process, got ${count}. Send fewer at a time, or raise --max-old-space-size of Node`,
  );
}

async function makeElements(
  tensors: readonly NamedTensor[],
  clock: Pick<Clock, "now" | "defer">,
): Promise<void> {
  let until = clock.now() + ELEMENTS_MS;
  for (const [, tensor] of tensors) {
    for (const _ of tensor.elementSteps()) {
      if (clock.now() < until) continue;
      await new Promise<void>((resolve) => clock.defer(resolve));
      until = clock.now() + ELEMENTS_MS;
    }
  }
}

/** The result with long BYTES outputs in wire form, so that their elements are freed before the answer is written. */
function inWireForm(result: ExecutionResult): ExecutionResult {
  if (!(result instanceof Map)) return result;
  const outputs: Map<string, Tensor> = result;
  for (const [name, tensor] of outputs) {
    if (tensor.datatype !== "BYTES" || tensor.byteLength < LONG_STRINGS_BYTES) continue;
    outputs.set(name, Tensor.fromBytes("BYTES", tensor.shape, tensor.bytes));
  }
  return result;
}
