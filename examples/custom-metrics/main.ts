import { batch, Triton } from "@tritonjs/core";
import { onDiagnostics } from "@tritonjs/core/diagnostics";
import { metrics } from "@tritonjs/http";
import { Counter, Histogram } from "prom-client";

/*
 * Metrics of a program on the metrics page of its server: one that the model counts, and one of a diagnostics channel.
 * The page also has metrics of the models, of the process and of its event loop.
 *
 *   npm start
 */

await using triton = new Triton();
const registers = [triton.metrics];
const words = new Counter({ name: "app_words_total", help: "Words that the model has read.", registers });
const batches = new Histogram({
  name: "app_batch_rows",
  help: "Rows of the batches, by the reason of their cut.",
  labelNames: ["model", "cut"],
  buckets: [1, 2, 4, 8],
  registers,
});
onDiagnostics("tritonjs:batch:formed", ({ model, cut, batchSize }) => {
  batches.observe({ model, cut }, batchSize);
});

const count = triton.bind({
  modelName: "count_words",
  inputs: [{ name: "text", dtype: "BYTES", shape: [1] }],
  outputs: [{ name: "words", dtype: "INT32", shape: [1] }],
  inferFunc: batch(({ text }) => {
    const counts = text.strings().map((line) => line.split(" ").length);
    words.inc(counts.reduce((sum, one) => sum + one, 0));
    return { words: Int32Array.from(counts) };
  }),
  config: { maxBatchSize: 4 },
});
const lines = ["call me Ishmael", "it was love at first sight", "the sun shone"];
await Promise.all(lines.map((text) => count.inferSample({ text: [text] })));

const { addresses } = await triton.serve({ frontends: [metrics({ port: 0 })] });
const page = await (await fetch(`${addresses.metrics!.url}/metrics`)).text();
const shown = /^(app_|nv_inference_(count|exec_count)|nodejs_eventloop_utilization|process_resident_memory)/;
for (const line of page.split("\n").sort()) if (shown.test(line)) console.log(line);
