import { TritonError } from "@tritonjs/protocol";
import { AsyncResource, process } from "#host";
import type { InstanceInfo } from "../callback/infer-func.js";
import type { DeviceId } from "../callback/instance-device.js";
import type { Log } from "../observe/log.js";
import type { ExecutableRequest } from "../request-info.js";
import { getOrAdd } from "../system/collections.js";
import type { Execution, ExecutionResult, Executor } from "./backend.js";
import type { ImportedModel } from "./import-callable.js";
import {
  type Callable,
  type LoopShare,
  loopShareOf,
  runCallable,
  runDecoupled,
  warnOfBlock,
} from "./run-callable.js";
import { longStrings, NO_TENSORS, withRoomForStrings } from "./string-heap.js";

/** Runs a callback on this thread: for closures, which cannot run anywhere else, and for modules that may run here. */
export class InlineExecutor implements Executor {
  readonly isolation = "inline";
  readonly mustFinish = false;
  readonly details = {};
  onRoom: Executor["onRoom"];
  readonly #load: (running: Iterable<Execution>) => Promise<ImportedModel>;
  /** Batches that the module works on; undefined for a callback, which has no logger. */
  readonly #running: Set<Execution> | undefined;
  readonly #asyncContext = new AsyncResource("TritonInstance");
  readonly #roomAgain = (): void => this.onRoom?.();
  /** Undefined until it has run a batch. */
  #share: LoopShare | undefined;
  #model: ImportedModel | undefined;
  #takesStrings = false;

  /**
   * @param callable the callback, or a function that imports its module, given the batches that run at any time
   * @param log gets a warning about a callback that blocks
   * @param releasesInputs true for a callback that uses its inputs no more once it has answered
   */
  constructor(
    callable: Callable | ((running: Iterable<Execution>) => Promise<ImportedModel>),
    private readonly log?: Pick<Log, "warning">,
    readonly releasesInputs = false,
  ) {
    const isModule = typeof callable === "function";
    this.#load = isModule ? callable : async () => ({ callable, finalize: undefined });
    this.#running = isModule ? new Set() : undefined;
  }

  get isPausing(): boolean {
    const share = this.#share;
    if (share === undefined || !share.isSpent) return false;
    share.whenRenewed(this.#roomAgain);
    return true;
  }

  async start(): Promise<void> {
    const { callable, finalize } = await this.#load(this.#running ?? []);
    this.#model = { callable: { ...callable, log: this.log }, finalize };
    this.#takesStrings = callable.info.modelConfig.input.some(({ dataType }) => dataType === "TYPE_STRING");
  }

  execute(execution: Execution): Promise<readonly ExecutionResult[] | undefined> {
    const { clock, within } = execution;
    this.#share ??= loopShareOf(clock);
    const turn = this.#share.begin();
    // Not in the context of the request that started the batch.
    return this.#asyncContext.runInAsyncScope(() =>
      within === undefined ? this.#run(execution, turn) : within(() => this.#run(execution, turn)),
    );
  }

  async stop(): Promise<void> {
    const { callable, finalize } = this.#model ?? {};
    this.#model = undefined;
    await finalize?.();
    if (callable !== undefined) await releaseHeld(callable.info);
  }

  async #run(execution: Execution, begun: number): Promise<readonly ExecutionResult[] | undefined> {
    const { callable } = this.#model!;
    let turn = begun;
    this.#running?.add(execution);
    const strings = this.#takesStrings ? longStrings(execution.requests) : NO_TENSORS;
    try {
      if (strings.length === 0) return await runAll(callable, execution);
      this.#share!.end(turn);
      return await withRoomForStrings(callable.info.modelName, strings, execution, () => {
        turn = this.#share!.begin();
        return runAll(callable, execution);
      });
    } finally {
      warnOfBlock(callable, this.#share!.end(turn));
      this.#running?.delete(execution);
    }
  }
}

/** Runs a batch. A decoupled model answers its requests itself. Without a promise of its own: each batch passes here. */
function runAll(callable: Callable, execution: Execution): Promise<readonly ExecutionResult[] | undefined> {
  if (!execution.decoupled) return runCallable(callable, execution);
  return runDecoupled(callable, execution) as Promise<undefined>;
}

interface Held {
  readonly opened: Promise<unknown>;
  readonly close: () => Promise<void>;
}

/** Resources by the device of the instance; each instance has a device object of its own. */
const heldThings = new WeakMap<DeviceId, Map<string, Held>>();

/**
 * Opens a resource for an instance on first use, and returns the same one from then on. It is closed when the instance
 * ends; in a worker it ends with the worker.
 *
 * @param key distinguishes the resources of one instance; if opening fails, the next call tries again
 */
export function heldByInstance<T>(
  { device }: { readonly device: DeviceId },
  key: string,
  open: () => Promise<T>,
  close: (thing: T) => Promise<void>,
): Promise<T> {
  const things = getOrAdd(heldThings, device, () => new Map<string, Held>());
  const known = things.get(key);
  if (known !== undefined) return known.opened as Promise<T>;
  const opened = open();
  things.set(key, { opened, close: async () => close(await opened) });
  opened.catch(() => things.delete(key));
  return opened;
}

/** Closes the resources of an instance. A failure is reported as a warning, and the others are closed all the same. */
async function releaseHeld({ device }: Pick<InstanceInfo, "device">): Promise<void> {
  const things = heldThings.get(device);
  if (things === undefined) return;
  heldThings.delete(device);
  for (const { close } of things.values()) {
    await close().catch((error) => process.emitWarning(TritonError.from(error).message, "TritonWarning"));
  }
}

/** Properties of {@link inlineRequests}, and when requests run. */
interface InlineOptions extends Partial<Pick<Executor, "start" | "capacity" | "mustFinish">> {
  /** True to answer the requests of a batch at the same time. @default false, one after another */
  readonly atOnce?: boolean;
  /**
   * Whether the event loop takes a turn before a request.
   *
   * @default true for all but the first request of a batch
   */
  readonly needsTurn?: (request: ExecutableRequest, isFirst: boolean) => boolean;
}

/** An executor that answers each request on this thread by itself. An error fails its own request. */
export function inlineRequests(
  answer: (request: ExecutableRequest, isOpen: () => boolean) => ExecutionResult | Promise<ExecutionResult>,
  { atOnce = false, needsTurn = (_, isFirst) => !isFirst, ...properties }: InlineOptions = {},
): Executor {
  const resultOf = async (execution: Execution, index: number): Promise<ExecutionResult> => {
    const isOpen = () => execution.isOpen(index);
    try {
      return isOpen() ? await answer(execution.requests[index]!, isOpen) : new Map();
    } catch (error) {
      return TritonError.from(error);
    }
  };
  return {
    isolation: "inline",
    mustFinish: false,
    takesAnyBatchSize: true,
    details: {},
    start: async () => {},
    stop: async () => {},
    ...properties,
    execute: async (execution) => {
      execution.inputsReady();
      const results: Promise<ExecutionResult>[] = [];
      for (const [index, request] of execution.requests.entries()) {
        if (!atOnce && needsTurn(request, index === 0)) await nextTurn();
        const result = resultOf(execution, index);
        results.push(result);
        if (!atOnce) await result;
      }
      const settled = await Promise.all(results);
      execution.outputsReady();
      return settled;
    },
  };
}

/** Resolves after the event loop has handled its waiting events. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
