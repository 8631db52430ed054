import { expect, it } from "vitest";
import { LiveProgress } from "../../../src/report/write-report.js";
import { CLEAR_LINE } from "../../../src/tool-command.js";

const level = { mode: "concurrency", value: 2 } as const;

const summary = (start: number, end: number) => ({
  start,
  end,
  throughput: 10,
  requestCount: 10,
  failureCount: 0,
  meanMs: 1,
  p50Ms: 1,
  p99Ms: 2,
});

it("writes a line every 10 seconds of a long window where lines cannot be written over", () => {
  let text = "";
  const progress = new LiveProgress({
    writeError: (piece) => {
      text += piece;
    },
  });
  progress.onLevelBegin();
  for (let second = 0; second < 25; second++)
    progress.onMoment(level, summary(second * 1000, (second + 1) * 1000));
  expect(text.split("\n").filter((line) => line !== "")).toEqual([
    "concurrency 2, window 1: 10 infer/s, latency avg 1 ms, p99 2 ms",
    "concurrency 2, window 1: 10 infer/s, latency avg 1 ms, p99 2 ms",
  ]);
});

/** Screen of a terminal with one line, as `\r` and the control sequence for clearing a line leave it. */
class Screen {
  readonly isInteractive = true;
  /** The line after each write. */
  readonly shown: string[] = [];
  #line = "";

  constructor(readonly columns?: number) {}

  writeError(text: string): void {
    expect(text).not.toContain("\n");
    this.#line = text.startsWith(CLEAR_LINE) ? text.slice(CLEAR_LINE.length) : this.#line + text;
    this.shown.push(this.#line);
  }
}

it("writes over one line of a terminal, with the queue once it is known, and clears it at the end", () => {
  const screen = new Screen();
  const progress = new LiveProgress(screen);
  progress.onLevelBegin();
  progress.onMoment(level, summary(0, 500));
  progress.onWindow(level, { ...summary(0, 1000), queueMs: 0.25 }, 1);
  progress.onMoment(level, summary(1000, 1500));
  progress.onLevel();
  expect(screen.shown).toEqual([
    "concurrency 2, window 1: 10 infer/s, latency avg 1 ms, p99 2 ms",
    "concurrency 2, window 2: 10 infer/s, latency avg 1 ms, p99 2 ms, queue 250 µs",
    "",
  ]);
});

it("cuts the line to the width of the terminal, so that it stays one line", () => {
  const screen = new Screen(40);
  const progress = new LiveProgress(screen);
  progress.onMoment(level, summary(0, 500));
  expect(screen.shown).toEqual(["concurrency 2, window 1: 10 infer/s, la"]);
});
