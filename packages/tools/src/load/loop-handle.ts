import { performance } from "node:perf_hooks";
import { waitedInTurnsMs } from "./load-clock.js";
import type { LoadLevel } from "./load-level.js";
import type { LoadLoop } from "./load-loop.js";
import type { LoopWindow } from "./loop-parts.js";

/** A window of one loop, with what its thread used. */
export interface ThreadWindow extends LoopWindow {
  readonly cpuMs: number;
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
    const utilization = performance.eventLoopUtilization();
    const waitedMs = waitedInTurnsMs();
    const { active, idle } = performance.eventLoopUtilization(utilization, this.#utilization);
    const busyMs = Math.max(0, active - (waitedMs - this.#waitedMs));
    const window: ThreadWindow = {
      ...this.#loop.take(),
      cpuMs: Math.max(0, cpuMs - this.#cpuMs - (waitedMs - this.#waitedMs)),
      eventLoopUtilization: active + idle > 0 ? Math.min(1, busyMs / (active + idle)) : 0,
    };
    this.#waitedMs = waitedMs;
    this.#cpuMs = cpuMs;
    this.#utilization = utilization;
    return window;
  }

  close(): Promise<void> {
    return this.#loop.close();
  }
}

/** CPU time of this thread; before Node 24, where it is not known, the time that its event loop was busy. */
function threadCpuMs(): number {
  const { threadCpuUsage } = process as { threadCpuUsage?: () => NodeJS.CpuUsage };
  if (threadCpuUsage === undefined) return performance.eventLoopUtilization().active;
  const { user, system } = threadCpuUsage.call(process);
  return (user + system) / 1000;
}
