import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { Triton } from "@tritonjs/core";
import { writePrototxt } from "@tritonjs/core/config";
import type { InferInit } from "@tritonjs/core/frontend";
import { type ModelConfig, Tensor, TritonError } from "@tritonjs/protocol";
import { type BatchTimes, type SimulatedBatch, simulatedBackend } from "./simulated-backend.js";
import { SIMULATED_INPUT, simulatedConfig } from "./simulated-config.js";
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

/** Options of {@link simulate}. */
export interface SimulationOptions {
  /** Configuration of the model; its tensors and its file do not matter. */
  readonly config: ModelConfig;
  /** Number of instances for a configuration without instance groups. @default 1 */
  readonly instances?: number;
  /** Requests in the order in which they arrive. */
  readonly requests: readonly SimulatedRequest[];
  readonly times: BatchTimes;
  /** Ends the simulation early. */
  readonly signal?: AbortSignal;
}

/** Outcome of a simulation. */
export interface SimulationResult {
  /** Milliseconds from the arrival of each request to its response; NaN for a request that failed. */
  readonly latenciesMs: Float64Array;
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
  const repository = await writeRepository(simulatedConfig(config, name, instances), name);
  const triton = new Triton({
    clock,
    modelRepository: repository,
    gpus: [],
    backends: { simulated: () => simulatedBackend(clock, times, (batch) => batches.push(batch)) },
  });
  try {
    await triton.ready();
    const model = triton.service.model(name, "");
    const inputsOf = inputsFor(model.config.maxBatchSize);
    const latenciesMs = new Float64Array(requests.length).fill(Number.NaN);
    const failures = new Map<string, number>();
    let [lastMs, open] = [0, 0];
    const fail = (error: TritonError) => failures.set(error.message, (failures.get(error.message) ?? 0) + 1);
    for (const [index, request] of requests.entries()) {
      await clock.advanceTo(request.atMs);
      if (index % TURN === 0) {
        await setImmediate();
        signal?.throwIfAborted();
      }
      open++;
      try {
        model.infer(initOf(request, inputsOf(request.rows)), (outcome, final) => {
          if (!final) return;
          open--;
          lastMs = clock.now();
          if (TritonError.is(outcome)) fail(outcome);
          else latenciesMs[index] = lastMs - request.atMs;
        });
      } catch (error) {
        open--;
        fail(TritonError.from(error));
      }
      clock.runDeferred();
    }
    await clock.runUntil(() => open === 0);
    const queue = triton.service.queue(name, "");
    const durationMs = lastMs - (requests[0]?.atMs ?? 0);
    const { length: count } = queue.instances;
    return { latenciesMs, failures, batches, cuts: queue.cuts, instances: count, durationMs };
  } finally {
    const closed = triton.close();
    await clock.drain();
    await closed;
    await rm(repository, { recursive: true, force: true });
  }
}

async function writeRepository(config: ModelConfig, name: string): Promise<string> {
  const repository = await mkdtemp(join(tmpdir(), "tritonjs-simulation-"));
  await mkdir(join(repository, name, "1"), { recursive: true });
  await writeFile(join(repository, name, "config.pbtxt"), writePrototxt(config));
  return repository;
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
