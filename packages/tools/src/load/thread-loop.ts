import { Worker } from "node:worker_threads";
import { TritonError } from "@tritonjs/protocol";
import type { LoadLevel } from "./load-level.js";
import type { LoopHandle, ThreadWindow } from "./loop-handle.js";
import type { ThreadPlan } from "./loop-plan.js";

/** A call to the loop of a thread. */
export interface LoopCall {
  readonly id: number;
  readonly name: keyof LoopHandle;
  readonly args: readonly unknown[];
}

/** Its answer. */
export interface LoopReply {
  readonly id: number;
  readonly value?: unknown;
  readonly error?: unknown;
}

interface Waiting {
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

/** A loop in a thread of its own. */
export class ThreadLoop implements LoopHandle {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, Waiting>();
  #next = 0;
  #fault: Error | undefined;

  constructor(plan: ThreadPlan) {
    this.#worker = new Worker(new URL("./load-thread.js", import.meta.url), { workerData: plan });
    this.#worker.on("message", ({ id, value, error }: LoopReply) => {
      const waiting = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (error === undefined) waiting?.resolve(value);
      else waiting?.reject(error);
    });
    this.#worker.once("error", (cause) => this.#failed(cause));
    this.#worker.once("exit", (code) => this.#failed(new Error(`it exited with code ${code}`)));
  }

  begin(level: LoadLevel, startAt: number): Promise<void> {
    return this.#call("begin", level, startAt) as Promise<void>;
  }

  run(level: LoadLevel, count: number, startAt: number): Promise<void> {
    return this.#call("run", level, count, startAt) as Promise<void>;
  }

  pause(): Promise<void> {
    return this.#call("pause") as Promise<void>;
  }

  playOut(): Promise<void> {
    return this.#call("playOut") as Promise<void>;
  }

  take(): Promise<ThreadWindow> {
    return this.#call("take") as Promise<ThreadWindow>;
  }

  async close(): Promise<void> {
    this.#fault ??= closedError();
    for (const { reject } of this.#waiting.values()) reject(this.#fault);
    this.#waiting.clear();
    await this.#worker.terminate();
  }

  #call(name: keyof LoopHandle, ...args: unknown[]): Promise<unknown> {
    if (this.#fault !== undefined) return Promise.reject(this.#fault);
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#worker.postMessage({ id, name, args } satisfies LoopCall);
    });
  }

  #failed(cause: Error): void {
    this.#fault ??= new TritonError("INTERNAL", `a thread of the load generator failed: ${cause.message}`, {
      cause,
    });
    for (const { reject } of this.#waiting.values()) reject(this.#fault);
    this.#waiting.clear();
  }
}

/** The error of calls to a closed generator. */
export function closedError(): TritonError {
  return new TritonError("UNAVAILABLE", "the load generator is closed", { reason: "CLIENT_CLOSED" });
}
