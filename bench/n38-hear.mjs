import { readFileSync } from "node:fs";
import { audio } from "@tritonjs/backends/media";
import { Triton } from "@tritonjs/core";
const folder = new URL("../examples/speech-recognition/", import.meta.url);
const data = readFileSync(new URL("recordings/04.wav", folder)).subarray(44);
const samples = Float32Array.from({ length: data.length / 2 }, (_, i) => data.readInt16LE(2 * i) / 2 ** 15);
const triton = new Triton();
const f = triton.bind({ modelName: "f", inferFunc: audio({ features: "fbank", input: "samples", lengths: true }), config: { maxBatchSize: 16, instanceGroup: [{ isolation: "inline" }] } });
for (let r = 0; r < 4; r++) { const c = process.cpuUsage(); for (let i = 0; i < 100; i++) await f.infer({ audio: [samples] }); const u = process.cpuUsage(c); console.log("ms per s", ((u.user+u.system)/1000/100/(samples.length/16000)).toFixed(3)); }
for (let r = 0; r < 4; r++) { const c = process.cpuUsage(); for (let i = 0; i < 100; i++) await f.inferSample({ audio: samples }); const u = process.cpuUsage(c); console.log("sample ms per s", ((u.user+u.system)/1000/100/(samples.length/16000)).toFixed(3)); }
await triton.close();
