import { errorFor, type ModelConfig, TritonError } from "@tritonjs/protocol";
import { process } from "#host";
import { divideOutputs, joinInputs } from "../batch/batch-tensors.js";
import { defaultTensors } from "../callback/batch-decorators.js";
import { explainFailure, notAListText } from "../callback/callback-error.js";
import { type Defaults, type RequestDecorator, requestDecoratorsOf } from "../callback/decorate.js";
import {
  type AnyInferFunc,
  type InstanceInfo,
  type PlainInferFunc,
  RESCHEDULE,
  type ResponseSender,
  STEPWISE_IS_TOLD,
  stepwiseModelOf,
  styleOf,
  type TensorFunc,
} from "../callback/infer-func.js";
import type { Log } from "../observe/log.js";
import type { OutputChecker } from "../request/inference-response.js";
import type { ExecutableRequest, RequestScope } from "../request-info.js";
import type { Clock } from "../system/clock.js";
import { getOrAdd } from "../system/collections.js";
import { repeatRows } from "../tensor-rows.js";
import type { CallbackExecution, ExecutionResult } from "./backend.js";
import { CallbackContext, toCallbackArrays, toInferRequest, withInputs } from "./callback-context.js";
import { ExecutionView, StepLoop } from "./stepwise-executor.js";

export interface Callable {
  readonly fn: AnyInferFunc;
  readonly info: InstanceInfo;
  readonly checker: OutputChecker;
  /** Gets a warning about a callback that blocks; undefined in a worker, whose event loop serves nothing else. */
  readonly log?: Pick<Log, "warning"> | undefined;
}

/** Runs a callback over a batch in the callback's calling style. Rejects with the error that the callback throws. */
export async function runCallable(
  callable: Callable,
  execution: CallbackExecution,
): Promise<readonly ExecutionResult[]> {
  const decorators = requestDecoratorsOf(callable.fn);
  if (decorators.length === 0) return runStyled(callable, execution);
  const { modelConfig } = callable.info;
  const run = (part: CallbackExecution) => runStyled(callable, part);
  return (await runDecorated(decorators, modelConfig, execution, run))!;
}

function runStyled(callable: Callable, execution: CallbackExecution): Promise<readonly ExecutionResult[]> {
  switch (styleOf(callable.fn)) {
    case "batch":
      return runBatch(callable, execution);
    case "sample":
      return runSample(callable, execution);
    case "requests":
      return runRequests(callable, execution);
    case "stepwise":
      throw new TritonError("INTERNAL", `model '${callable.info.modelName}': ${STEPWISE_IS_TOLD}`);
  }
}

async function runBatch(
  { fn, info, checker }: Callable,
  execution: CallbackExecution,
): Promise<readonly ExecutionResult[]> {
  const { requests } = execution;
  const inputs = joinInputs(execution);
  execution.inputsReady();
  const value = await (fn as unknown as TensorFunc<[], []>)(
    toCallbackArrays(inputs, info.modelName),
    new CallbackContext(info, execution),
  );
  execution.outputsReady();
  return divideOutputs(
    execution,
    checker.fromCallback(value, totalRows(requests), requestedBy(requests), true),
  );
}

/** Rows of the whole batch. */
export function totalRows(requests: readonly ExecutableRequest[]): number {
  return requests.reduce((sum, request) => sum + request.rows, 0);
}

/** Outputs that any request of the batch wants; empty if one wants all. */
export function requestedBy(
  requests: readonly Pick<ExecutableRequest, "requestedOutputs">[],
): readonly string[] {
  if (requests.length === 1) return requests[0]!.requestedOutputs;
  if (requests.some((request) => request.requestedOutputs.length === 0)) return [];
  return [...new Set(requests.flatMap((request) => request.requestedOutputs))];
}

async function runSample(
  { fn, info, checker }: Callable,
  execution: CallbackExecution,
): Promise<readonly ExecutionResult[]> {
  const request = execution.requests[0]!;
  const inputs = toCallbackArrays(joinInputs(execution), info.modelName);
  execution.inputsReady();
  const call = fn as unknown as TensorFunc<[], []>;
  const value = await request.runInContext(() => call(inputs, new CallbackContext(info, execution)));
  execution.outputsReady();
  return divideOutputs(execution, checker.fromCallback(value, request.rows, request.requestedOutputs, true));
}

function resultsOf(values: unknown, model: string, count: number): readonly unknown[] {
  if (!Array.isArray(values)) {
    throw errorFor("INVALID_OUTPUT", notAListText(model, values));
  }
  if (values.length !== count) {
    throw errorFor(
      "INVALID_OUTPUT",
      `Number of outputs returned by \`${model}\` inference callable (${values.length}) does not match number of ` +
        `requests (${count}) received from Triton.`,
    );
  }
  return values;
}

async function runRequests(
  { fn, info, checker }: Callable,
  execution: CallbackExecution,
): Promise<readonly ExecutionResult[]> {
  const { requests } = execution;
  const seen = requests.map((request) => toInferRequest(request, info.modelName));
  execution.inputsReady();
  const context = new CallbackContext(info, execution);
  let values: unknown;
  try {
    values = await (fn as PlainInferFunc<[], []>)(seen as never, context);
  } catch (thrown) {
    throw explainFailure(thrown, fn, info.modelName, info.modelConfig.input);
  }
  execution.outputsReady();
  return resultsOf(values, info.modelName, requests.length).map((value: unknown, i) => {
    if (value === RESCHEDULE) return RESCHEDULE;
    if (value instanceof Error) return TritonError.from(value);
    try {
      return checker.fromCallback(value, requests[i]!.rows, requests[i]!.requestedOutputs);
    } catch (error) {
      return TritonError.from(error);
    }
  });
}

/**
 * Runs a callback of a decoupled model, whose requests get any number of responses. A generator yields them until it
 * ends; a plain callback sends them through each request's `responseSender`.
 *
 * A generator is asked for the next responses when every consumer keeps up. It is ended early (`return()`) when all
 * requests of the batch have been cancelled.
 */
export async function runDecoupled(callable: Callable, execution: CallbackExecution): Promise<void> {
  const decorators = requestDecoratorsOf(callable.fn);
  if (decorators.length === 0) return streamStyled(callable, execution);
  await runDecorated(decorators, callable.info.modelConfig, execution, async (part) => {
    await streamStyled(callable, part);
    return undefined;
  });
}

function streamStyled(callable: Callable, execution: CallbackExecution): Promise<void> {
  switch (styleOf(callable.fn)) {
    case "batch":
      return streamBatch(callable, execution);
    case "sample":
      return streamSample(callable, execution);
    case "requests":
      return streamRequests(callable, execution);
    case "stepwise":
      runStepwise(callable, execution);
      return Promise.resolve();
  }
}

async function streamBatch(callable: Callable, execution: CallbackExecution): Promise<void> {
  const { fn, info, checker } = callable;
  const { requests } = execution;
  const inputs = joinInputs(execution);
  execution.inputsReady();
  const value = (fn as unknown as TensorFunc<[], []>)(
    toCallbackArrays(inputs, info.modelName),
    new CallbackContext(info, execution),
  );
  await forEachStep(callable, value, execution, (outputs) => {
    const split = divideOutputs(execution, checker.fromCallback(outputs, totalRows(requests), [], true));
    for (let i = 0; i < requests.length; i++) execution.send(i, split[i]!);
  });
  finishAll(execution);
}

async function streamSample(callable: Callable, execution: CallbackExecution): Promise<void> {
  const { fn, info, checker } = callable;
  const request = execution.requests[0]!;
  const inputs = toCallbackArrays(joinInputs(execution), info.modelName);
  execution.inputsReady();
  const call = fn as unknown as TensorFunc<[], []>;
  const value = request.runInContext(() => call(inputs, new CallbackContext(info, execution)));
  const send = (outputs: unknown) => {
    const checked = checker.fromCallback(outputs, request.rows, request.requestedOutputs, true);
    execution.send(0, execution.layout === undefined ? checked : divideOutputs(execution, checked)[0]!);
  };
  await forEachStep(callable, value, execution, send, request);
  finishAll(execution);
}

async function streamRequests(callable: Callable, execution: CallbackExecution): Promise<void> {
  const { fn, info } = callable;
  try {
    await answerRequests(callable, execution);
  } catch (thrown) {
    throw explainFailure(thrown, fn, info.modelName, info.modelConfig.input);
  }
}

async function answerRequests(callable: Callable, execution: CallbackExecution): Promise<void> {
  const { fn, info } = callable;
  const { requests } = execution;
  const seen = requests.map((request, i) =>
    Object.assign(toInferRequest(request, info.modelName), {
      responseSender: senderFor(callable, execution, i),
    }),
  );
  execution.inputsReady();
  const value: unknown = (fn as unknown as PlainInferFunc<[], []>)(
    seen as never,
    new CallbackContext(info, execution),
  );
  if ((await value) === undefined) {
    // The senders answer, even after this.
    execution.outputsReady();
    return;
  }
  await forEachStep(callable, value, execution, (results) => {
    const each = resultsOf(results, info.modelName, requests.length);
    for (let i = 0; i < requests.length; i++) sendResult(callable, execution, i, each[i]);
  });
  finishAll(execution);
}

const HERE: RequestScope = { runInContext: (fn) => fn() };

/**
 * Passes each step of a callback's result to `send`: the values that it yields, or the one that it returns.
 *
 * @param scope request in whose context a generator runs, with each of its steps
 */
async function forEachStep(
  callable: Callable,
  value: unknown,
  execution: CallbackExecution,
  send: (step: unknown) => void,
  scope: RequestScope = HERE,
): Promise<void> {
  const settled = await value;
  const iterator = iteratorOf(settled);
  if (iterator === undefined) {
    execution.outputsReady();
    send(settled);
    return;
  }
  const share = loopShareOf(execution.clock);
  const end = () => scope.runInContext(() => iterator.return?.());
  for (;;) {
    const turn = share.begin();
    let next: IteratorResult<unknown>;
    try {
      next = await scope.runInContext(() => iterator.next());
    } finally {
      warnOfBlock(callable, share.end(turn));
    }
    if (next.done) break;
    try {
      send(next.value);
    } catch (error) {
      await end();
      throw error;
    }
    await allWritable(execution);
    // Otherwise, a generator that never ends could not be cancelled.
    if (share.isSpent && anyOpen(execution)) await share.renewed();
    if (!anyOpen(execution)) {
      await end();
      break;
    }
  }
  execution.outputsReady();
}

function iteratorOf(value: unknown): AsyncIterator<unknown> | Iterator<unknown> | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  const iterable = value as Partial<AsyncIterable<unknown> & Iterable<unknown>>;
  return iterable[Symbol.asyncIterator]?.() ?? iterable[Symbol.iterator]?.();
}

async function allWritable(execution: CallbackExecution): Promise<void> {
  for (let i = 0; i < execution.requests.length; i++) await execution.writable(i);
}

function anyOpen(execution: CallbackExecution): boolean {
  return execution.requests.some((_, i) => execution.isOpen(i));
}

function finishAll(execution: CallbackExecution): void {
  for (let i = 0; i < execution.requests.length; i++) execution.finish(i);
}

function senderFor(callable: Callable, execution: CallbackExecution, index: number): ResponseSender<[]> {
  return {
    get isOpen() {
      return execution.isOpen(index);
    },
    async send(result, { final = false } = {}) {
      try {
        sendResult(callable, execution, index, result, final);
      } catch (error) {
        // Thrown here, the error could go unnoticed: callers need not await the sending of a response.
        execution.sendError(index, TritonError.from(error), true);
      }
      await execution.writable(index);
    },
    close: () => execution.finish(index),
  };
}

/** Sends one result; nothing for `undefined`, an error for an `Error`. */
function sendResult(
  { checker }: Callable,
  execution: CallbackExecution,
  index: number,
  result: unknown,
  final = false,
): void {
  if (result === undefined || !execution.isOpen(index)) return;
  if (result === RESCHEDULE) {
    execution.reschedule(index);
    return;
  }
  if (result instanceof Error) {
    execution.sendError(index, TritonError.from(result), final);
    return;
  }
  // A response of a decoupled model may have any number of rows.
  const { requestedOutputs } = execution.requests[index]!;
  execution.send(index, checker.fromCallback(result, undefined, requestedOutputs), final);
}

/** A subset of the requests of an execution. The times of the whole are taken at its first and last part. */
class PartOfExecution extends ExecutionView {
  constructor(
    whole: CallbackExecution,
    indices: readonly number[],
    private readonly isFirst: boolean,
    private readonly isLast: boolean,
  ) {
    super(
      whole,
      indices.map((index) => whole.requests[index]!),
      indices,
    );
  }

  override inputsReady(): void {
    if (this.isFirst) super.inputsReady();
  }

  override outputsReady(): void {
    if (this.isLast) super.outputsReady();
  }
}

type Results = readonly ExecutionResult[] | undefined;
type Run = (execution: CallbackExecution) => Promise<Results>;

/**
 * Runs a batch through the decorators that see its requests, outermost first, and passes their result to `run`. It
 * calls `run` once, or once for each group that a decorator makes.
 *
 * @returns a result for each request of the batch, or undefined if the execution is answered as it runs
 */
async function runDecorated(
  decorators: readonly RequestDecorator[],
  config: ModelConfig,
  execution: CallbackExecution,
  run: Run,
): Promise<Results> {
  const [decorator, ...inner] = decorators;
  if (decorator === undefined) return run(execution);
  const next: Run = (part) => runDecorated(inner, config, part, run);
  return decorator.name === "groupByKeys"
    ? runGroups(execution, next)
    : next(filled(execution, decorator.defaults, config));
}

async function runGroups(execution: CallbackExecution, run: Run): Promise<Results> {
  const groups = groupsOf(execution.requests);
  if (groups.length === 1) return run(execution);
  const results: ExecutionResult[] = [];
  for (const [i, indices] of groups.entries()) {
    const part = new PartOfExecution(execution, indices, i === 0, i === groups.length - 1);
    try {
      const own = await run(part);
      for (const [at, index] of indices.entries()) if (own !== undefined) results[index] = own[at]!;
    } catch (thrown) {
      // An error of one group does not affect the others.
      const error = TritonError.from(thrown);
      for (const [at, index] of indices.entries()) {
        if (execution.decoupled) part.sendError(at, error, true);
        else results[index] = error;
      }
    }
  }
  return execution.decoupled ? undefined : results;
}

/** Groups the positions of requests with the same inputs; groups and positions are in order. */
function groupsOf(requests: readonly ExecutableRequest[]): number[][] {
  const groups = new Map<string, number[]>();
  for (const [index, { inputs }] of requests.entries()) {
    const key = JSON.stringify([...inputs.keys()].sort());
    getOrAdd(groups, key, () => []).push(index);
  }
  return [...groups.values()];
}

function filled(execution: CallbackExecution, defaults: Defaults, config: ModelConfig): CallbackExecution {
  const { requests } = execution;
  const names = Object.keys(defaults);
  if (requests.every(({ inputs }) => names.every((name) => inputs.has(name)))) return execution;
  const { tensors } = defaultTensors(defaults, config);
  const withDefaults = requests.map((request): ExecutableRequest => {
    const inputs = new Map(request.inputs);
    for (const [name, tensor] of tensors) {
      if (inputs.has(name)) continue;
      inputs.set(name, repeatRows(tensor, config.maxBatchSize > 0 ? request.rows : undefined));
    }
    return withInputs(request, inputs, request.rows);
  });
  return new ExecutionView(execution, withDefaults);
}

/** One loop for each callback of an instance. */
const loops = new WeakMap<Callable, StepLoop>();

/** Passes the requests of an execution to the loop of a stepwise callback, which answers them from then on. */
function runStepwise(callable: Callable, execution: CallbackExecution): void {
  const { fn, info } = callable;
  getOrAdd(loops, callable, () => new StepLoop(stepwiseModelOf(fn), info)).add(execution);
}

/** Milliseconds in which callbacks may start and continue before the event loop handles its events. */
const SHARE_MS = 2;

/** Milliseconds after the first callback of a turn in which further ones may start, whatever took the time. */
const TURN_MS = 50;

/**
 * Time that all callbacks of an event loop share between two of its turns. A callback that ends lets the next one start
 * in the same turn, and a generator that waits only for promises continues in the same turn. Without a limit, sockets,
 * timers and health probes would wait until all queued requests are done.
 *
 * The share is spent by callbacks that took this long together, or by one event that led to callbacks and took this
 * long with all that they caused. The time in which sockets are read between callbacks does not count, up to 50 ms:
 * requests that have arrived would only wait in memory.
 */
export class LoopShare {
  readonly #clock: Pick<Clock, "now" | "defer">;
  #turn = 0;
  #hasBegun = false;
  /** When the first callback of this turn began. */
  #turnSince = 0;
  /** Milliseconds of this turn in which callbacks were at work, without those that are. */
  #spentMs = 0;
  /** Number of callbacks at work that began in this turn, and when the first of them did. */
  #atWork = 0;
  #atWorkSince = 0;
  /** When the first callback began that the present event of the event loop led to. */
  #eventSince: number | undefined;
  readonly #endEvent = (): void => {
    this.#eventSince = undefined;
  };
  #listeners = new Set<() => void>();

  constructor(clock: Pick<Clock, "now" | "defer">) {
    this.#clock = clock;
  }

  /** True from the time the share is spent until the event loop has handled its events. */
  get isSpent(): boolean {
    if (!this.#hasBegun) return false;
    const now = this.#clock.now();
    if (now - this.#turnSince >= TURN_MS) return true;
    if (this.#eventSince !== undefined && now - this.#eventSince >= SHARE_MS) return true;
    return this.#spentMs + (this.#atWork > 0 ? now - this.#atWorkSince : 0) >= SHARE_MS;
  }

  begin(): number {
    const now = this.#clock.now();
    if (!this.#hasBegun) {
      this.#hasBegun = true;
      this.#turnSince = now;
      this.#clock.defer(() => this.#renew());
    }
    if (this.#eventSince === undefined) {
      this.#eventSince = now;
      // Runs after all promises that the event settled.
      process.nextTick(this.#endEvent);
    }
    if (this.#atWork === 0) this.#atWorkSince = now;
    this.#atWork++;
    return this.#turn;
  }

  /**
   * A callback that began in this turn is done or waits. One of an earlier turn does not count.
   *
   * @returns milliseconds for which the event loop has not turned while callbacks were at work
   */
  end(turn: number): number {
    if (turn !== this.#turn) return 0;
    const workedMs = this.#clock.now() - this.#atWorkSince;
    this.#atWork--;
    if (this.#atWork === 0) this.#spentMs += workedMs;
    return workedMs;
  }

  /** Calls `listener` once when there is a new share. Listeners are called in the order of their registration. */
  whenRenewed(listener: () => void): void {
    this.#listeners.add(listener);
  }

  renewed(): Promise<void> {
    return new Promise((resolve) => this.whenRenewed(resolve));
  }

  #renew(): void {
    this.#turn++;
    this.#hasBegun = false;
    this.#spentMs = 0;
    this.#atWork = 0;
    const listeners = this.#listeners;
    this.#listeners = new Set();
    for (const listener of listeners) listener();
  }
}

/** Milliseconds from which a callback that holds the event loop is worth a warning. A busy machine alone delays by less. */
const BLOCK_MS = 1000;

/** Models with a warning about a callback that blocks. All instances of a model version share the object. */
const warnedOf = new WeakSet<ModelConfig>();

/** Warns once of a model whose callback has held the event loop for so long that time limits and probes were late. */
export function warnOfBlock({ info, log }: Callable, heldMs: number): void {
  if (heldMs < BLOCK_MS || log === undefined || warnedOf.has(info.modelConfig)) return;
  warnedOf.add(info.modelConfig);
  const { modelName: model, modelVersion: version } = info;
  log.warning(
    `model '${model}' held the event loop for ${Math.round(heldMs)} ms: time limits, other requests and health probes ` +
      "waited. Move the callback to a module and bind its URL, so that it runs in a worker",
    { model, version },
  );
}

const shares = new WeakMap<Clock, LoopShare>();

/** The share of all callbacks with this clock: those of the real one run on the same event loop. */
export function loopShareOf(clock: Clock): LoopShare {
  return getOrAdd(shares, clock, () => new LoopShare(clock));
}
