import { readdirSync, readFileSync } from "node:fs";
import { audio } from "@tritonjs/backends/media";
import { onnxruntime } from "@tritonjs/backends/onnxruntime";
import { ctcDecoder } from "@tritonjs/backends/speech";
import { Triton } from "@tritonjs/core";

const folder = new URL("../examples/speech-recognition/", import.meta.url);
const file = (path) => new URL(path, folder).pathname;
const recordings = JSON.parse(readFileSync(file("recordings/recordings.json"), "utf8")).map(
  ({ name, text }) => {
    const data = readFileSync(file(`recordings/${name}`)).subarray(44);
    const samples = Float32Array.from(
      { length: data.length / 2 },
      (_, i) => data.readInt16LE(2 * i) / 2 ** 15,
    );
    return { text, samples, seconds: samples.length / 16000 };
  },
);
const model = process.argv[2];
const clients = Number(process.argv[3]);
const ms = Number(process.argv[4] ?? 5000);
const triton = new Triton({
  modelRepository: ["models", "steps"].map(file),
  gpuFallback: "cpu",
  logger: { error() {}, warn() {}, info() {}, debug() {} },
});
await triton.ready();
const go = (samples) =>
  triton.infer(
    model,
    { WAV: [samples], WAV_LENS: [[samples.length]] },
    { requestedOutputs: ["TRANSCRIPTS"] },
  );
for (const { samples } of recordings) await go(samples);
const stats = async () => {
  const r = {};
  for (const m of ["feature_extractor", "fbank", "encoder", "scoring", "ctc_scoring", "decoder"]) {
    const s = await triton.service.statistics?.(m);
    r[m] = s;
  }
  return r;
};
const threads = () =>
  Object.fromEntries(
    readdirSync("/proc/self/task").map((t) => {
      const x = readFileSync(`/proc/self/task/${t}/stat`, "utf8");
      const name = x.slice(x.indexOf("(") + 1, x.lastIndexOf(")"));
      const f = x.slice(x.lastIndexOf(")") + 2).split(" ");
      return [t + " " + name, [Number(f[11]) * 10, Number(f[12]) * 10]];
    }),
  );
const t0 = threads();
const [cpu, started] = [process.cpuUsage(), performance.now()];
let [done, next] = [0, 0];
await Promise.all(
  Array.from({ length: clients }, async () => {
    while (performance.now() < started + ms) {
      const { samples, seconds } = recordings[next++ % recordings.length];
      await go(samples);
      done += seconds;
    }
  }),
);
const elapsed = (performance.now() - started) / 1000;
const used = process.cpuUsage(cpu);
console.log(
  model,
  clients,
  "s/s",
  (done / elapsed).toFixed(1),
  "CPU ms per s",
  ((used.user + used.system) / 1000 / done).toFixed(2),
);
const t1 = threads();
console.log(
  Object.entries(t1)
    .map(([k, [u, y]]) => [k, u - (t0[k]?.[0] ?? 0), y - (t0[k]?.[1] ?? 0)])
    .filter((x) => x[1] + x[2] > 30)
    .map(([k, u, y]) => `${k} user ${(u / done).toFixed(2)} sys ${(y / done).toFixed(2)}`)
    .join("\n"),
);

await triton.close();
