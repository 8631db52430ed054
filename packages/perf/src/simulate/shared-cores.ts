import type { Clock } from "@tritonjs/core/testing";

/** Cores that all running batches share equally, as a system that slices time does. */
export class SharedCores {
  #running: { leftMs: number; readonly done: () => void }[] = [];
  #since = 0;
  #timer: { cancel(): void } | undefined;

  constructor(
    private readonly clock: Clock,
    private readonly cores: number,
  ) {}

  /** Runs a batch that takes `ms` if it has a core to itself. */
  run(ms: number, done: () => void): void {
    this.#elapse();
    this.#running.push({ leftMs: ms, done });
    this.#next();
  }

  get #speed(): number {
    return Math.min(1, this.cores / this.#running.length);
  }

  #elapse(): void {
    const now = this.clock.now();
    for (const one of this.#running) one.leftMs -= (now - this.#since) * this.#speed;
    this.#since = now;
  }

  #next(): void {
    this.#timer?.cancel();
    if (this.#running.length === 0) return;
    let first = this.#running[0]!;
    for (const one of this.#running) if (one.leftMs < first.leftMs) first = one;
    this.#timer = this.clock.setTimer(Math.max(0, first.leftMs / this.#speed), () => {
      this.#elapse();
      this.#running = this.#running.filter((one) => one !== first);
      this.#next();
      first.done();
    });
  }
}

interface Span {
  readonly startMs: number;
  readonly endMs: number;
}

/**
 * Milliseconds that recorded batches would have taken alone, if they ran on cores that all of them shared.
 *
 * @param lists batches of each model
 * @returns the times of the batches of each model, in order
 */
export function workOf(lists: readonly (readonly Span[])[], cores: number): readonly (readonly number[])[] {
  const edges = lists
    .flat()
    .flatMap(({ startMs, endMs }) => [
      { atMs: startMs, change: 1 },
      { atMs: endMs, change: -1 },
    ])
    .sort((a, b) => a.atMs - b.atMs);
  const times: number[] = [];
  const worked: number[] = [];
  let [running, sum, since] = [0, 0, edges[0]?.atMs ?? 0];
  for (const { atMs, change } of edges) {
    sum += (atMs - since) * (running === 0 ? 0 : Math.min(1, cores / running));
    since = atMs;
    running += change;
    if (times.at(-1) === atMs) worked[worked.length - 1] = sum;
    else {
      times.push(atMs);
      worked.push(sum);
    }
  }
  const index = new Map(times.map((atMs, i) => [atMs, worked[i]!]));
  return lists.map((list) => list.map(({ startMs, endMs }) => index.get(endMs)! - index.get(startMs)!));
}
