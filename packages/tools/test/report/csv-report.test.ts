import { expect, it } from "vitest";
import { csvFiles } from "../../src/report/csv-report.js";
import { composingPath } from "../../src/report/write-report.js";
import { concurrency, levelOf, RUN, requests, serverOf } from "../support/report-run.js";

it("the CSV has perf_analyzer's columns and rows in the order of rising throughput", () => {
  const [file] = csvFiles(
    [
      levelOf(concurrency(2), requests(100), { server: serverOf(100) }),
      levelOf(concurrency(1), requests(60, 20), { server: serverOf(60) }),
    ],
    RUN,
    false,
  );
  expect(file!.text.split("\n")).toEqual([
    "Concurrency,Inferences/Second,Client Send,Network+Server Send/Recv,Server Queue,Server Compute Input," +
      "Server Compute Infer,Server Compute Output,Client Recv,p50 latency,p90 latency,p95 latency,p99 latency",
    "1,60,1000,12250,1000,500,3000,250,2000,20000,20000,20000,20000",
    "2,100,1000,2250,1000,500,3000,250,2000,10000,10000,10000,10000",
    "",
  ]);
});

it("further columns are there when they are asked for, with a value for each GPU", () => {
  const metrics = {
    pages: 1,
    gauges: { nv_gpu_utilization: { "GPU-1": 0.5, "GPU-2": 0.25 } },
    cuts: new Map(),
  };
  const level = levelOf(concurrency(1), requests(10), { metrics, instability: "latency" });
  const [file] = csvFiles([level], { ...RUN, percentile: 99.9 }, true);
  const [header, row] = file!.text.split("\n");
  expect(header).toBe(
    "Concurrency,Inferences/Second,Client Send,Client Recv,p50 latency,p90 latency,p95 latency,p99 latency," +
      "p99.9 latency,request/response,response wait,Avg GPU Utilization,Failed Requests,Remark",
  );
  expect(row).toBe("1,10,1000,2000,10000,10000,10000,10000,10000,3000,7000,GPU-1:0.5;GPU-2:0.25;,0,unstable");
});

it("a composing model has a file of its own, beside the main one", () => {
  const server = serverOf(10, { composing: [serverOf(5, { name: "../step", version: "2" })] });
  const [, file] = csvFiles([levelOf(concurrency(1), requests(10), { server })], RUN, false);
  expect(file!.text).toBe(
    "Concurrency,Inferences/Second,Server Queue,Server Compute Input,Server Compute Infer,Server Compute Output\n" +
      "1,5,1000,500,3000,250\n",
  );
  expect(composingPath("out/perf.csv", file!.model!)).toMatch(/^out[/\\]\.\._step_v2\.perf\.csv$/);
});

it("a level without a request has no row", () => {
  expect(
    csvFiles([levelOf(concurrency(1), [])], RUN, false)[0]!
      .text.trimEnd()
      .split("\n").length,
  ).toBe(1);
});
