import { fork } from "node:child_process";
import { once } from "node:events";
import { setImmediate as turn } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { batch } from "@tritonjs/core";
import ndarray from "ndarray";

/**
 * A clock that moves from timer to timer, and stands still while a batch really runs. The batch then takes its processor
 * time on the clock, as on a machine whose cores all running batches share.
 */
export class WorkClock {
  /** Number of batches that wait for their real run, or really run. */
  running = 0;
  #now = 0;
  #timers = [];
  #onIdle;
  #lastRun = Promise.resolve();
  #onCores = [];
  #since = 0;
  #nextEnd;

  /** @param cores of the machine. @default as many as batches run */
  constructor(cores = Number.POSITIVE_INFINITY) {
    this.cores = cores;
  }

  now() {
    return this.#now;
  }

  wallNow() {
    return this.#now;
  }

  setTimer(delayMs, run) {
    const timer = { at: this.#now + Math.max(0, delayMs), run };
    const after = this.#timers.findIndex(({ at }) => at > timer.at);
    this.#timers.splice(after < 0 ? this.#timers.length : after, 0, timer);
    const cancel = () => {
      this.#timers = this.#timers.filter((one) => one !== timer);
    };
    return { cancel };
  }

  defer(run) {
    queueMicrotask(run);
  }

  /** Runs a batch while the clock stands still, one at a time. It takes `msOf` of its result afterwards. */
  async work(run, msOf) {
    this.running++;
    const really = this.#lastRun.then(run);
    this.#lastRun = really.catch(() => {});
    const result = await really;
    const ended = new Promise((done) => {
      this.#elapse();
      this.#onCores.push({ leftMs: msOf(result), done });
      this.#plan();
    });
    this.running--;
    this.#onIdle?.();
    await ended;
    return result;
  }

  /** Lets time pass until `isOver`. */
  async runUntil(isOver) {
    while (!isOver()) {
      await turn();
      await turn();
      // A loop that spins would cost processor time too.
      if (this.running > 0) {
        await new Promise((done) => {
          this.#onIdle = done;
        });
        continue;
      }
      const timer = this.#timers.shift();
      if (timer === undefined) continue;
      this.#now = Math.max(this.#now, timer.at);
      timer.run();
    }
  }

  get #speed() {
    return Math.min(1, this.cores / this.#onCores.length);
  }

  #elapse() {
    for (const one of this.#onCores) one.leftMs -= (this.#now - this.#since) * this.#speed;
    this.#since = this.#now;
  }

  #plan() {
    this.#nextEnd?.cancel();
    if (this.#onCores.length === 0) return;
    const first = this.#onCores.reduce((least, one) => (one.leftMs < least.leftMs ? one : least));
    this.#nextEnd = this.setTimer(Math.max(0, first.leftMs / this.#speed), () => {
      this.#elapse();
      this.#onCores = this.#onCores.filter((one) => one !== first);
      this.#plan();
      first.done();
    });
  }
}

/**
 * An `inferFunc` that runs an ONNX model in a process of its own, so that its processor time is not mixed with that of the
 * server. `close` ends the process.
 */
export function timedOnnx(file, clock) {
  const program = fileURLToPath(new URL("../programs/timed-onnx.mjs", import.meta.url));
  const child = fork(program, [file], { serialization: "advanced" });
  const inferFunc = batch(async ({ x }) => {
    const [rows, ...shape] = x.shape;
    const size = shape.reduce((product, one) => product * one, rows);
    const { y } = await clock.work(
      async () => {
        child.send({ x: x.data.slice(0, size), dims: [rows, ...shape] });
        const [answer] = await once(child, "message");
        return answer;
      },
      ({ ms }) => ms,
    );
    return { y: ndarray(y, [rows, y.length / rows]) };
  });
  return { inferFunc, close: () => child.kill() };
}
