import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { Triton } from "@tritonjs/core";
import { writePrototxt } from "@tritonjs/core/config";
import type { InferInit } from "@tritonjs/core/frontend";
import { type ModelConfig, Tensor, TritonError } from "@tritonjs/protocol";
import { cleanUpAtExit } from "../exit-cleanups.js";
import {
  type BatchTimes,
  SIMULATED_INPUT,
  type SimulatedBatch,
  simulatedBackend,
  simulatedConfig,
  takesAhead,
} from "./simulated-backend.js";
import { SimulationClock } from "./simulation-clock.js";

/** A request of a simulation. */
export interface SimulatedRequest {
  /** Arrival in milliseconds. */
  readonly atMs: number;
  /** Rows along the batch axis; 1 for a model without one. */
  readonly rows: number;
  readonly priority?: number;
  readonly queueTimeoutMicroseconds?: number;
  readonly sequence?: { readonly id: bigint | string; readonly start: boolean; readonly end: boolean };
}

/** A number of clients. Each sends its next request as soon as its last one has ended. */
export interface ClosedLoop {
  /** Number of clients, which is the number of requests in flight. */
  readonly concurrency: number;
  /** Number of requests of all clients together. */
  readonly count: number;
  /** Rows of each request; 1 for a model without a batch axis. */
  readonly rows: number;
}

/** Options of {@link simulate}. */
export interface SimulationOptions {
  /** Configuration of the model; its tensors and its file do not matter. */
  readonly config: ModelConfig;
  /** Number of instances for a configuration without instance groups. @default 1 */
  readonly instances?: number;
  /** Requests in the order in which they arrive, or clients that each wait for their response. */
  readonly requests: readonly SimulatedRequest[] | ClosedLoop;
  readonly times: BatchTimes;
  /** Ends the simulation early. */
  readonly signal?: AbortSignal;
}

/** Outcome of a simulation. */
export interface SimulationResult {
  /** Milliseconds from the arrival of each request to its response; NaN for a request that failed. */
  readonly latenciesMs: Float64Array;
  /** Time at which each request ended in milliseconds; also of a request that failed. */
  readonly endsMs: Float64Array;
  /** Number of failed requests, by error text. */
  readonly failures: ReadonlyMap<string, number>;
  readonly batches: readonly SimulatedBatch[];
  /** Number of batches by the reason why they were cut. */
  readonly cuts: Readonly<Record<string, number>>;
  /** Number of instances. */
  readonly instances: number;
  /** Milliseconds from the first arrival to the last response. */
  readonly durationMs: number;
}

/** Requests that share a turn of the event loop before the process may do other work. */
const TURN = 2000;

/**
 * Runs requests through the library's own scheduler and instances on a virtual clock. The model computes nothing: its
 * batches take the given times.
 *
 * @throws TritonError for a configuration that cannot be served
 */
export async function simulate(options: SimulationOptions): Promise<SimulationResult> {
  const { config, requests, times, signal, instances = 1 } = options;
  const clock = new SimulationClock();
  const batches: SimulatedBatch[] = [];
  const name = config.name === "" ? "model" : config.name;
  const { repository, forget } = writeRepository(simulatedConfig(config, name, instances), name);
  const triton = new Triton({
    clock,
    modelRepository: repository,
    gpus: [],
    backends: {
      simulated: () => simulatedBackend(clock, times, takesAhead(config), (batch) => batches.push(batch)),
    },
  });
  try {
    await triton.ready();
    const model = triton.service.model(name, "");
    const inputsOf = inputsFor(model.config.maxBatchSize);
    const count = "concurrency" in requests ? requests.count : requests.length;
    const latenciesMs = new Float64Array(count).fill(Number.NaN);
    const endsMs = new Float64Array(count).fill(Number.NaN);
    const failures = new Map<string, number>();
    let [firstMs, lastMs] = [Number.NaN, 0];
    const send: Send = (index, request, onEnd) => {
      if (Number.isNaN(firstMs)) firstMs = request.atMs;
      const end = (outcome: unknown) => {
        lastMs = clock.now();
        endsMs[index] = lastMs;
        if (TritonError.is(outcome)) failures.set(outcome.message, (failures.get(outcome.message) ?? 0) + 1);
        else latenciesMs[index] = lastMs - request.atMs;
        onEnd();
      };
      try {
        model.infer(initOf(request, inputsOf(request.rows)), (outcome, final) => final && end(outcome));
      } catch (error) {
        end(TritonError.from(error));
      }
    };
    await ("concurrency" in requests
      ? runClosedLoop(requests, clock, send, signal)
      : runSchedule(requests, clock, send, signal));
    const queue = triton.service.queue(name, "");
    const durationMs = Number.isNaN(firstMs) ? 0 : lastMs - firstMs;
    const { length: instanceCount } = queue.instances;
    return { latenciesMs, endsMs, failures, batches, cuts: queue.cuts, instances: instanceCount, durationMs };
  } finally {
    const closed = triton.close();
    await clock.drain();
    await closed;
    await rm(repository, { recursive: true, force: true });
    forget();
  }
}

/** Sends request number `index`. The listener is called once, when the request has ended. */
type Send = (index: number, request: SimulatedRequest, onEnd: () => void) => void;

async function runSchedule(
  requests: readonly SimulatedRequest[],
  clock: SimulationClock,
  send: Send,
  signal: AbortSignal | undefined,
): Promise<void> {
  let open = 0;
  for (const [index, request] of requests.entries()) {
    await clock.advanceTo(request.atMs);
    if (index % TURN === 0) {
      await setImmediate();
      signal?.throwIfAborted();
    }
    open++;
    send(index, request, () => open--);
    clock.runDeferred();
  }
  await clock.runUntil(() => open === 0);
}

/** Clients whose requests end in one batch send their next ones together, as in one turn of the event loop. */
async function runClosedLoop(
  { concurrency, count, rows }: ClosedLoop,
  clock: SimulationClock,
  send: Send,
  signal: AbortSignal | undefined,
): Promise<void> {
  let [sent, ended, idle] = [0, 0, Math.min(concurrency, count)];
  const sendAll = () => {
    const ready = idle;
    idle = 0;
    for (let i = 0; i < ready && sent < count; i++) send(sent++, { atMs: clock.now(), rows }, onEnd);
  };
  const onEnd = () => {
    ended++;
    if (++idle === 1) clock.setTimer(0, sendAll);
  };
  sendAll();
  clock.runDeferred();
  while (ended < count) {
    await setImmediate();
    signal?.throwIfAborted();
    const before = ended;
    await clock.runUntil(() => ended >= Math.min(count, before + TURN));
    // Without a timer nothing more can happen.
    if (ended === before) return;
  }
}

/**
 * Writes the repository at once: a second Ctrl-C meanwhile would leave its folder behind.
 *
 * @returns the folder, and a function to call after its removal
 */
function writeRepository(config: ModelConfig, name: string): { repository: string; forget(): void } {
  const repository = mkdtempSync(join(tmpdir(), "tritonjs-simulation-"));
  const forget = cleanUpAtExit(() => rmSync(repository, { recursive: true, force: true }));
  mkdirSync(join(repository, name, "1"), { recursive: true });
  writeFileSync(join(repository, name, "config.pbtxt"), writePrototxt(config));
  return { repository, forget };
}

/** Returns inputs of a number of rows. Equal ones share their tensor. */
function inputsFor(maxBatchSize: number): (rows: number) => ReadonlyMap<string, Tensor> {
  const known = new Map<number, ReadonlyMap<string, Tensor>>();
  return (rows) => {
    let inputs = known.get(rows);
    if (inputs === undefined) {
      const shape = maxBatchSize > 0 ? [rows, 1] : [1];
      const bytes = new Uint8Array(maxBatchSize > 0 ? rows : 1);
      inputs = new Map([[SIMULATED_INPUT, Tensor.fromBytes("UINT8", shape, bytes)]]);
      known.set(rows, inputs);
    }
    return inputs;
  };
}

function initOf(request: SimulatedRequest, inputs: ReadonlyMap<string, Tensor>): InferInit {
  const { priority = 0, queueTimeoutMicroseconds = 0, sequence } = request;
  return {
    inputs,
    priority,
    queueTimeoutMicroseconds,
    ...(sequence === undefined
      ? {}
      : { correlationId: sequence.id, sequenceStart: sequence.start, sequenceEnd: sequence.end }),
  };
}
