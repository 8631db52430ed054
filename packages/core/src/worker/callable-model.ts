import { Console } from "node:console";
import { Writable } from "node:stream";
import { format } from "node:util";
import { withTraceparent } from "@tritonjs/protocol";
import { BatchLayout, type PaddingRules } from "../batch/batch-layout.js";
import { splitOutputs } from "../batch/batch-tensors.js";
import type { InstanceInfo } from "../callback/infer-func.js";
import type { CallbackExecution } from "../instance/backend.js";
import { withSignal } from "../instance/callback-context.js";
import { importCallable, type ModuleOptions, resolveLibrary } from "../instance/import-callable.js";
import type { LogLine } from "../instance/js-model.js";
import { type Callable, runCallable, runDecoupled } from "../instance/run-callable.js";
import { longStrings, withRoomForStrings } from "../instance/string-heap.js";
import type { ExecutableRequest, SequenceInfo } from "../request-info.js";
import { realClock } from "../system/clock.js";
import type { WorkerBatch, WorkerHost, WorkerModel, WorkerResult } from "./serve-models.js";

/** Entry point of workers that run a user's module. */
export async function load(data: unknown, info: InstanceInfo, host: WorkerHost): Promise<WorkerModel> {
  const options = data as ModuleOptions;
  resolveLibrary(options.module);
  if (host.logsConsole) logConsole(info.modelName, (line) => host.log(line));
  const { callable, finalize } = await importCallable(options, info, host);
  const sequences = new SequencesOfSlots();
  return {
    ownsOutputs: false,
    callsModels: true,
    ...(finalize === undefined ? {} : { close: finalize }),
    execute: (batch) => execute(callable, sequences, batch),
  };
}

async function execute(
  callable: Callable,
  sequences: SequencesOfSlots,
  { inputs, parts, padding, rows, requests, models, stream }: WorkerBatch,
): Promise<WorkerResult | undefined> {
  const perRequest = parts ?? splitOutputs(inputs, rows);
  const joined = parts === undefined ? { mergedInputs: inputs } : { layout: layoutOf(callable, padding) };
  const executables = requests.map(
    (request, i): ExecutableRequest => ({
      ...request,
      sequence: sequences.of(request),
      inputs: perRequest[i]!,
      rows: rows[i]!,
      // No asynchronous context crosses threads, only the name of the request's span.
      runInContext: (fn) => withTraceparent(request.traceparent, fn),
    }),
  );
  const members: Omit<CallbackExecution, "signal"> = {
    requests: executables,
    ...joined,
    clock: realClock,
    models: models!,
    decoupled: stream !== undefined,
    inputsReady() {},
    outputsReady() {},
    isOpen: (index) => stream?.isOpen(index) ?? true,
    writable: (index) => stream?.writable(index),
    send: (index, outputs, final) => stream?.send(index, outputs, final),
    sendError: (index, error, final) => stream?.sendError(index, error, final),
    finish: (index) => stream?.finish(index),
    reschedule: (index) => stream?.reschedule(index),
  };
  const execution: CallbackExecution = withSignal(members, new SignalOfAll(requests));
  const traced = requests.find(({ traceparent }) => traceparent !== undefined);
  const run = async () => {
    if (stream === undefined) return runCallable(callable, execution);
    await runDecoupled(callable, execution);
    return undefined;
  };
  return withTraceparent(traced?.traceparent, async () => {
    const strings = longStrings(executables);
    const { modelName } = callable.info;
    const results =
      strings.length === 0 ? await run() : await withRoomForStrings(modelName, strings, execution, run);
    return results && { separate: results };
  });
}

let layout: BatchLayout | undefined;

/** The layout of batches, created once for the worker's model. */
function layoutOf({ info }: Callable, padding: PaddingRules | undefined): BatchLayout {
  layout ??= new BatchLayout(info.modelConfig, padding);
  return layout;
}

/** Signal of the whole batch, created on first use by a callback. */
class SignalOfAll {
  readonly #requests: readonly { readonly signal: AbortSignal }[];

  constructor(requests: readonly { readonly signal: AbortSignal }[]) {
    this.#requests = requests;
  }

  get signal(): AbortSignal {
    return allAborted(this.#requests.map(({ signal }) => signal));
  }
}

function allAborted(signals: readonly AbortSignal[]): AbortSignal {
  const controller = new AbortController();
  const check = () => {
    if (signals.every((signal) => signal.aborted)) controller.abort();
  };
  for (const signal of signals) signal.addEventListener("abort", check, { once: true });
  check();
  return controller.signal;
}

/**
 * The sequences in the slots of an instance, inside its worker. Messages carry copies; this restores one shared object
 * for all requests of a sequence. Keeps one object for each slot.
 */
class SequencesOfSlots {
  readonly #bySlot = new Map<number, SequenceInfo>();

  of(request: {
    readonly sequence: SequenceInfo | undefined;
    readonly sequenceStart: boolean;
  }): SequenceInfo | undefined {
    const copy = request.sequence;
    if (copy === undefined) return undefined;
    const known = this.#bySlot.get(copy.slot);
    if (known !== undefined && !request.sequenceStart) return known;
    this.#bySlot.set(copy.slot, copy);
    return copy;
  }
}

/**
 * Writes the output of `console` in this worker to the server's log. The worker must run the module of one model only.
 * Direct output to `process.stdout` is not redirected.
 */
function logConsole(modelName: string, write: (line: LogLine) => void): void {
  const log = (level: LogLine["level"], text: string) =>
    write({ level, message: `model '${modelName}': ${text.replace(/\n$/, "")}` });
  const linesOf = (level: LogLine["level"]) =>
    new Writable({
      decodeStrings: false,
      write(text, _encoding, done) {
        log(level, String(text));
        done();
      },
    });
  const logged = new Console({ stdout: linesOf("info"), stderr: linesOf("error"), colorMode: false });
  logged.warn = (...values) => log("warning", format(...values));
  logged.debug = (...values) => log("verbose", format(...values));
  Object.assign(console, logged);
}
