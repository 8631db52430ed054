import { expect, it } from "vitest";
import { RequestFigures } from "../../../src/measure/request-figures.js";
import { figuresJson } from "../../../src/report/report-files.js";
import { LiveProgress } from "../../../src/report/write-report.js";
import { concurrency, levelOf, RUN, requests, serverOf } from "../support/report-run.js";

it("figures of one level have AIPerf's keys at the top", () => {
  const row = { sent: 0, times: [40, 60, 120], tokens: [1, 2, 2], end: 120 };
  const json = JSON.parse(figuresJson([levelOf(concurrency(1), [row], {}, true)], RUN));
  expect(json.time_to_first_token).toMatchObject({
    unit: "ms",
    avg: 40,
    min: 40,
    max: 40,
    p50: 40,
    p99: 40,
    std: null,
  });
  expect(json.inter_token_latency.avg).toBe(20);
  expect(json.output_token_throughput.unit).toBe("tokens/sec");
  expect(json.output_token_throughput_per_user).toMatchObject({ unit: "tokens/sec/user", avg: 50 });
  expect(json.goodput).toEqual({ unit: "requests/sec", avg: 1 / 0.12 });
  expect(json.request_latency.avg).toBe(120);
  expect(json.was_cancelled).toBe(false);
  expect(json.input_config.model).toBe("m");
});

it("figures of several levels are in a list, with what is wrong with each", () => {
  const json = JSON.parse(
    figuresJson(
      [
        levelOf(concurrency(1), requests(10), { server: serverOf(10) }),
        levelOf(concurrency(2), [...requests(3), { sent: 0, end: 1, error: "gone" }], {
          instability: "throughput",
          interrupted: true,
        }),
      ],
      RUN,
    ),
  );
  expect(json.request_latency).toBeUndefined();
  expect(json.was_cancelled).toBe(true);
  expect(json.levels.map((level: { stable: boolean }) => level.stable)).toEqual([true, false]);
  expect(json.levels[0].server).toMatchObject({ queue_ms: 1, batch_sizes: [{ batch_size: 4, count: 2.5 }] });
  expect(json.levels[1].error_summary).toEqual([{ error_details: { message: "gone" }, count: 1 }]);
});

it("figures of a level without a window have no times", () => {
  const figures = new RequestFigures({ batchSize: 1 });
  const fault = { kind: "generator", text: "no thread" } as const;
  const json = JSON.parse(figuresJson([levelOf(concurrency(1), [], { figures, fault, timeline: [] })], RUN));
  expect(json).toMatchObject({ start_time: null, end_time: null, error: "no thread" });
});

it("progress is a line for each window, or one line that changes in a terminal", () => {
  const { timeline } = levelOf(concurrency(4), requests(10));
  const summary = { ...timeline[0]!, queueMs: 1.5 };
  const write = (isInteractive: boolean) => {
    let text = "";
    const progress = new LiveProgress({ isInteractive, writeError: (part) => (text += part) });
    progress.onMoment(concurrency(4), summary);
    progress.onWindow(concurrency(4), summary, 1);
    progress.onMoment(concurrency(4), summary);
    progress.onLevel();
    return text;
  };
  expect(write(false)).toBe(
    "concurrency 4, window 1: 10 infer/s, latency avg 10 ms, p99 10 ms, queue 1.5 ms\n",
  );
  expect(write(true).split("\r\x1b[2K")).toEqual([
    "",
    "concurrency 4, window 1: 10 infer/s, latency avg 10 ms, p99 10 ms",
    "concurrency 4, window 2: 10 infer/s, latency avg 10 ms, p99 10 ms, queue 1.5 ms",
    "",
  ]);
});
