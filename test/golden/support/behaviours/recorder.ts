import { type ErrorCode, RESCHEDULE, type SequenceInfo, TritonError } from "@tritonjs/core";
import type { Clock } from "@tritonjs/testing";
import type { ParsedConfig } from "../config-text.js";
import type { ModelRequest, ModelResult } from "./behaviour.js";
import type { DecoupledRequest } from "./decoupled.js";
import { describeRequest, type ExecutedRequest } from "./executed-request.js";
import { type Array_, int32, mapInt32 } from "./tensors.js";

/** One call of the model. */
export interface ExecutionRecord {
  /** Name of the model, in scenarios with several. */
  readonly model?: string;
  readonly requests: readonly ExecutedRequest[];
  readonly about_ms: number;
}

/** The calls of all models of a scenario, in the order in which they began. */
export class ExecutionLog {
  executions: ExecutionRecord[] = [];
  /** Number of executions of each instance. */
  byInstance: Record<string, number> = {};
  readonly #clock: Clock;
  #started: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#started = clock.now();
  }

  add(requests: readonly ExecutedRequest[], model: string | undefined, instance: string): void {
    this.byInstance[instance] = (this.byInstance[instance] ?? 0) + 1;
    const about_ms = this.#clock.now() - this.#started;
    this.executions.push({ ...(model === undefined ? {} : { model }), requests, about_ms });
  }

  /** Takes the executions so far, and counts time from now on. */
  take(): ExecutionRecord[] {
    const taken = this.executions;
    this.executions = [];
    this.byInstance = {};
    this.#started = this.#clock.now();
    return taken;
  }
}

/**
 * The model of the scheduler scenarios. It takes the requested time on the scenario's clock, returns the number of
 * its execution in `OUT`, and records every call.
 */
export class Recorder {
  readonly #clock: Clock;
  readonly #log: ExecutionLog;
  readonly #name: string | undefined;
  /** Suffix of parameters that are for this model only. */
  readonly #alias: string;
  readonly #execMs: number;
  readonly #batched: boolean;
  readonly #decoupled: boolean;
  readonly #config: ParsedConfig;
  readonly #outputs: readonly string[];
  /** Executions of each instance so far. */
  readonly #calls = new Map<string, number>();
  /** Runs of iterative sequences so far. */
  readonly #runs = new WeakMap<SequenceInfo, number>();

  /** @param name name recorded with every call, where there are several models */
  constructor(config: ParsedConfig, clock: Clock, log: ExecutionLog, name?: string) {
    this.#clock = clock;
    this.#log = log;
    this.#name = name;
    this.#alias = `_${config.parameters?.alias?.stringValue ?? ""}`;
    this.#execMs = Number(config.parameters?.exec_ms?.stringValue ?? 0);
    this.#decoupled = config.modelTransactionPolicy?.decoupled ?? false;
    this.#batched = (config.maxBatchSize ?? 0) > 0;
    this.#config = config;
    this.#outputs = (config.output ?? []).map((output) => output.name);
  }

  /** The callback of all instances. */
  readonly inferFunc = (
    requests: readonly ModelRequest[],
    { instanceName }: { readonly instanceName: string },
  ): Promise<ModelResult[] | undefined> => {
    const index = this.#calls.get(instanceName) ?? 0;
    this.#calls.set(instanceName, index + 1);
    this.#log.add(
      requests.map((request) => describeRequest(request, this.#config)),
      this.#name,
      instanceName,
    );
    return this.#execute(
      requests.map((request) => this.#addressed(request)),
      index,
    );
  };

  /** The request with the parameters for this model under their plain names. */
  #addressed(request: ModelRequest): ModelRequest {
    const own = Object.entries(request.parameters).filter(([name]) => name.endsWith(this.#alias));
    if (this.#alias === "_" || own.length === 0) return request;
    const plain = own.map(([name, value]) => [name.slice(0, -this.#alias.length), value]);
    return { ...request, parameters: { ...request.parameters, ...Object.fromEntries(plain) } };
  }

  async #execute(requests: readonly ModelRequest[], index: number): Promise<ModelResult[] | undefined> {
    const watched = requests.filter(({ parameters }) => parameters.watch).map(({ signal }) => signal);
    await this.#sleep(Math.max(...requests.map((request) => this.#duration(request))), watched);
    if (requests.some(({ parameters }) => parameters.raise)) throw new Error("model raised");
    const rows = requests.reduce((sum, request) => sum + this.#rows(request), 0);
    if (this.#decoupled) return this.#stream(requests as readonly DecoupledRequest[], index, rows);
    return requests.map((request, position) => {
      if (this.#wantsAgain(request)) return RESCHEDULE;
      if (request.parameters.watch && request.signal.aborted) {
        return new TritonError("CANCELLED", "model saw the cancellation");
      }
      return this.#answer(request, [index, position, requests.length, rows]);
    });
  }

  /** Answers the requests of a decoupled model one after the other. */
  async #stream(requests: readonly DecoupledRequest[], index: number, rows: number): Promise<undefined> {
    for (const request of requests) {
      const { parameters, responseSender: sender } = request;
      const count = Number(parameters.n ?? 1);
      for (let i = 0; i < count; i++) {
        if (i > 0 && parameters.gap !== undefined) await this.#sleep(Number(parameters.gap), []);
        const final = Boolean(parameters.final_with_last) && i === count - 1;
        const failed = parameters.fail !== undefined && Number(parameters.fail) === i;
        // Nothing waits for single answers: a client that has left does not hold the model up.
        void sender.send(
          failed
            ? new TritonError("INTERNAL", `decoupled failure ${i}`)
            : this.#outputsOf(request, [index, i, count, rows]),
          { final: final && !failed },
        );
      }
      sender.close();
    }
  }

  /** An iterative sequence runs as often as its request says. */
  #wantsAgain({ sequence, parameters }: ModelRequest): boolean {
    if (sequence === undefined || parameters.iters === undefined) return false;
    const runs = (this.#runs.get(sequence) ?? 0) + 1;
    this.#runs.set(sequence, runs);
    return runs < Number(parameters.iters);
  }

  #duration({ parameters }: ModelRequest): number {
    return Number(parameters.sleep ?? this.#execMs);
  }

  #rows({ inputs }: ModelRequest): number {
    const first = Object.values(inputs)[0];
    return this.#batched ? (first?.shape[0] ?? 1) : 1;
  }

  #sleep(ms: number, watched: readonly AbortSignal[]): Promise<void> {
    return new Promise((resolve) => {
      if (ms === 0) return resolve();
      const timer = this.#clock.setTimer(ms, resolve);
      for (const signal of watched) {
        signal.addEventListener("abort", () => {
          timer.cancel();
          resolve();
        });
      }
    });
  }

  #answer(request: ModelRequest, out: readonly number[]): ModelResult {
    const { parameters } = request;
    if (parameters.fail) {
      const code = (parameters.code ?? "INTERNAL") as ErrorCode;
      return new TritonError(code, `failed on request ${request.id || "?"}`);
    }
    return this.#outputsOf(request, out);
  }

  #outputsOf(request: ModelRequest, out: readonly number[]): Readonly<Record<string, Array_>> {
    const { parameters, inputs } = request;
    const omitted = String(parameters.omit ?? "").split(",");
    const outputs: Record<string, Array_> = {};
    for (const name of this.#outputs.filter((output) => !omitted.includes(output))) {
      const rows = this.#rows(request);
      const input = inputs[name.replace(/_OUT$/, "")];
      if (name === "OUT") outputs[name] = this.#batched ? repeat(out, rows) : int32(out);
      else if (name.endsWith("_OUT") && input !== undefined)
        outputs[name] = mapInt32(input, (value) => value + 1);
    }
    return outputs;
  }
}

function repeat(values: readonly number[], rows: number): Array_ {
  return int32(Array.from({ length: rows }, () => values).flat(), [rows, values.length]);
}
