import { expect, it } from "vitest";
import { csvFiles } from "../../../src/report/report-files.js";
import { composingPath } from "../../../src/report/write-report.js";
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

/** Cells of a row by the names of their columns. */
function cellsOf(text: string, row = 1): Record<string, string> {
  const [header = [], ...rows] = text.split("\n").map((line) => line.split(","));
  return Object.fromEntries(header.map((name, i) => [name, rows[row - 1]![i]!]));
}

it("a decoupled model has the throughput of its responses after that of its inferences", () => {
  const rows = requests(10).map((row) => ({ ...row, responses: 3 }));
  const [file] = csvFiles([levelOf(concurrency(1), rows)], { ...RUN, decoupled: true }, false);
  expect(file!.text).toMatch(/^Concurrency,Inferences\/Second,Response Throughput,Client Send,.*\n1,10,30,/);
});

it("a response cache has its columns after those of the model, and its time is not the network's", () => {
  const base = serverOf(10);
  const stages = { ...base.stages, cacheHit: { count: 5, ns: 5e6 }, cacheMiss: { count: 5, ns: 10e6 } };
  const [file] = csvFiles(
    [levelOf(concurrency(1), requests(10), { server: { ...base, stages } })],
    RUN,
    false,
  );
  expect(file!.text.split("\n")[0]).toContain(
    ",Server Compute Output,Server Cache Hit,Server Cache Miss,Client Recv,",
  );
  expect(cellsOf(file!.text)).toMatchObject({
    "Server Cache Hit": "500",
    "Server Cache Miss": "1000",
    "Network+Server Send/Recv": "750",
  });
});

const rate = (value: number) => ({ mode: "request_rate", value, distribution: "constant" }) as const;

it("a request rate heads its column, also in the files of composing models and without any row", () => {
  const run = { ...RUN, load: "request_rate" } as const;
  const server = serverOf(10, { composing: [serverOf(10, { name: "step", version: "1" })] });
  const files = csvFiles([levelOf(rate(12.5), requests(10), { server })], run, false);
  for (const { text } of files) expect(text).toMatch(/^Request Rate,Inferences\/Second,.*\n12\.5,10,/);
  expect(files.length).toBe(2);
  expect(csvFiles([], run, false)[0]!.text).toMatch(/^Request Rate,/);
  expect(csvFiles([], { ...run, load: "request_intervals" }, false)[0]!.text).toMatch(/^Request Rate,/);
  expect(csvFiles([], RUN, false)[0]!.text).toMatch(/^Concurrency,/);
});

it("a level whose server could not be asked has no values in the columns of the server", () => {
  const [file] = csvFiles(
    [levelOf(concurrency(1), requests(5), { server: serverOf(5) }), levelOf(concurrency(2), requests(10))],
    RUN,
    false,
  );
  const columns = ["Network+Server Send/Recv", "Server Queue", "Server Compute Input"];
  columns.push("Server Compute Infer", "Server Compute Output");
  const empty = Object.fromEntries(columns.map((column) => [column, ""]));
  expect(cellsOf(file!.text, 2)).toMatchObject({ ...empty, "Client Send": "1000", "Client Recv": "2000" });
  expect(cellsOf(file!.text, 1)["Server Queue"]).toBe("1000");
});
