import { performance } from "node:perf_hooks";
import { waitedInTurnsMs } from "./load-clock.js";
import type { LoadLevel } from "./load-level.js";
import type { LoadLoop } from "./load-loop.js";
import type { LoopWindow } from "./loop-parts.js";
import { threadCpuMs } from "./thread-cpu.js";

/** A window of one loop, with what its thread used. */
export interface ThreadWindow extends LoopWindow {
  readonly cpuMs: number;
  /** CPU time as a share of the window, 0 to 1. */
  readonly cpuUtilization: number;
  readonly eventLoopUtilization: number;
}

/** A loop in this thread or in another one. */
export interface LoopHandle {
  begin(level: LoadLevel, startAt: number): Promise<void>;
  run(level: LoadLevel, count: number, startAt: number): Promise<void>;
  pause(): Promise<void>;
  playOut(): Promise<void>;
  take(): Promise<ThreadWindow>;
  close(): Promise<void>;
}

/** A loop in this thread. */
export class LocalLoop implements LoopHandle {
  readonly #loop: LoadLoop;
  #cpuMs = threadCpuMs();
  #takenAt = performance.now();
  #utilization = performance.eventLoopUtilization();
  #waitedMs = waitedInTurnsMs();

  constructor(loop: LoadLoop) {
    this.#loop = loop;
  }

  async begin(level: LoadLevel, startAt: number): Promise<void> {
    this.#loop.begin(level, startAt);
  }

  run(level: LoadLevel, count: number, startAt: number): Promise<void> {
    return this.#loop.run(level, count, startAt);
  }

  pause(): Promise<void> {
    return this.#loop.pause();
  }

  playOut(): Promise<void> {
    return this.#loop.playOut();
  }

  async take(): Promise<ThreadWindow> {
    const cpuMs = threadCpuMs();
    const now = performance.now();
    const utilization = performance.eventLoopUtilization();
    const waitedMs = waitedInTurnsMs();
    const { active, idle } = performance.eventLoopUtilization(utilization, this.#utilization);
    const busyMs = Math.max(0, active - (waitedMs - this.#waitedMs));
    const usedMs = Math.max(0, cpuMs - this.#cpuMs - (waitedMs - this.#waitedMs));
    const window: ThreadWindow = {
      ...this.#loop.take(),
      cpuMs: usedMs,
      cpuUtilization: now > this.#takenAt ? Math.min(1, usedMs / (now - this.#takenAt)) : 0,
      eventLoopUtilization: active + idle > 0 ? Math.min(1, busyMs / (active + idle)) : 0,
    };
    this.#waitedMs = waitedMs;
    this.#cpuMs = cpuMs;
    this.#takenAt = now;
    this.#utilization = utilization;
    return window;
  }

  close(): Promise<void> {
    return this.#loop.close();
  }
}
