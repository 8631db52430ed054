import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { InferenceServerClient } from "@tritonjs/client/http";
import { Triton } from "@tritonjs/core";
import { http } from "@tritonjs/http";
import { recordScheduling } from "@tritonjs/operations/time-travel";
import { perf, readTrace, replayTrace, summarizeTrace, traceSummaryText } from "@tritonjs/perf";
import { serviceOf } from "@tritonjs/server";

/*
 * A load, its trace, what a second instance would have made of the same load, and its batches once more.
 *
 *   npm start
 */

const folder = await mkdtemp(join(tmpdir(), "load-"));
process.chdir(folder);
const triton = new Triton({
  trace: { file: "trace.json" }, // no traces until a client asks for them
  extensions: [recordScheduling({ file: "minute.tape" })],
});
triton.bind({
  modelName: "slow",
  inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
  outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
  inferFunc: async (requests) => {
    await setTimeout(2 + requests.length); // 2 ms for the batch, and 1 ms for each request
    return requests.map(({ inputs }) => ({ y: inputs.x }));
  },
  config: { maxBatchSize: 4 },
});
const { addresses } = await triton.serve({ frontends: [http({ port: 0 })] });
const { url } = addresses.http!;
const { accessToken } = serviceOf(triton);

const client = new InferenceServerClient(url, { accessToken });
const { trace_level: initially } = await client.getTraceSettings();
const { trace_level: now, trace_rate: rate } = await client.updateTraceSettings({
  trace_level: ["TIMESTAMPS"],
  trace_rate: "1",
});
console.log(`trace level ${initially}, then ${now} of every request (rate ${rate})`);
await client.close();

const terminal = {
  write: (text: string) => void process.stdout.write(text),
  writeError: (text: string) => void process.stderr.write(text),
  stopRequested: () => new Promise<void>(() => {}),
};
// The commands of a shell: tritonjs perf, tritonjs trace summary and tritonjs replay.
const load = ["--concurrency-range", "8", "--request-count", "200"];
const access = ["-u", url, "-H", `triton-access-token: ${accessToken}`];
await perf(["-m", "slow", ...load, ...access], terminal);
await triton.close(); // writes the trace and the recording
console.log(traceSummaryText(summarizeTrace(await readTrace(["trace.json"]), 2)));

await writeFile("one.pbtxt", "max_batch_size: 4 dynamic_batching { }");
await writeFile("two.pbtxt", "max_batch_size: 4 dynamic_batching { } instance_group { count: 2 }");
await replayTrace(["trace.json", "--config", "one.pbtxt", "--config", "two.pbtxt"], terminal);
// The same batches again, and for whom one request waited.
await replayTrace(["minute.tape", "--batches", "--explain", "100"], terminal);
process.chdir(tmpdir());
await rm(folder, { recursive: true });
