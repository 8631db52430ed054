/*
 * Are loops in JavaScript the right tool? Each loop over the bytes of tensors beside the fastest that Node has for it: a
 * library in native code where there is one, else one in JavaScript. Processor time of one thread.
 *
 * Base64 and gzip have no loop of ours: they are Buffer's and node:zlib's, in native code.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { Float16Array as JavaScriptFloat16Array } from "@petamoriken/float16";
import { decodeBytes, encodeBytes, float16ToFloat32, float32ToFloat16 } from "@tritonjs/protocol";
import { Packr, Unpackr } from "msgpackr";
import { rolldown } from "rolldown";
import sharp from "sharp";
import { root } from "../scripts/run.mjs";
import { medianOf, ratioOf, runPairs, SECONDS, short } from "./support/pairs.mjs";
import { report } from "./support/report.mjs";

const COUNT = 150_000;

const { parseJson, ByteWriter, pixelWriter, pixelArray } = await internals();
const rows = {};

const floats = Float32Array.from({ length: COUNT }, (_, i) => Math.fround(Math.sin(i) * 10));
const halves = float32ToFloat16(floats);
const Float16 = globalThis.Float16Array ?? JavaScriptFloat16Array;
const theirHalves = Float16.from(floats);
const float16 = globalThis.Float16Array === undefined ? "@petamoriken/float16" : "Float16Array of V8";
await compare(
  "FP16 to FP32",
  () => float16ToFloat32(halves),
  float16,
  () => Float32Array.from(theirHalves),
);
await compare(
  "FP32 to FP16",
  () => float32ToFloat16(floats),
  float16,
  () => Float16.from(floats),
);

const texts = Array.from({ length: COUNT / 10 }, (_, i) => Buffer.from(`word ${i}`));
const packed = new Packr({ useRecords: false });
const unpacked = new Unpackr({ useRecords: false, copyBuffers: false });
const [raw, message] = [encodeBytes(texts), Buffer.from(packed.pack(texts))];
await compare(
  "BYTES, reading 15,000",
  () => decodeBytes(raw),
  "msgpackr",
  () => unpacked.unpack(message),
);
await compare(
  "BYTES, writing 15,000",
  () => encodeBytes(texts),
  "msgpackr",
  () => packed.pack(texts),
);

const numbers = Buffer.from(JSON.stringify(Array.from(floats, Number)));
await compare(
  "JSON numbers, reading",
  () => parseJson(numbers),
  "JSON.parse",
  () => JSON.parse(numbers),
);
await compare(
  "JSON numbers, writing",
  () => new ByteWriter().doubles(floats).bytes(),
  "JSON.stringify",
  () => Buffer.from(JSON.stringify(Array.from(floats))),
);

const side = 224;
const pixels = Buffer.from(Uint8Array.from({ length: side * side * 3 }, (_, i) => (i * 7919) & 255));
const colours = {
  channels: 3,
  colour: "RGB",
  scale: 1 / 255,
  mean: [0.485, 0.456, 0.406],
  std: [0.229, 0.224, 0.225],
};
const plan = { width: side, height: side, dtype: "FP32", ...colours };
for (const layout of ["NCHW", "NHWC"]) {
  const write = pixelWriter({ ...plan, layout });
  const [factor, offset] = [
    colours.std.map((std) => 1 / 255 / std),
    colours.std.map((std, i) => -colours.mean[i] / std),
  ];
  const source = { raw: { width: side, height: side, channels: 3 } };
  await compare(
    `pixels to FP32, ${layout}`,
    () => write(pixels, 3, pixelArray("FP32", side * side * 3), 0),
    layout === "NHWC" ? "sharp" : "sharp, without the layout",
    () => sharp(pixels, source).linear(factor, offset).raw({ depth: "float" }).toBuffer(),
  );
}
report("loops", {
  rows,
  note: `150,000 numbers or pixels' values. A ratio of 2 is half of the other's processor time. FP16 on Node ${process.versions.node}.`,
});

async function compare(name, ours, other, theirs) {
  const side = (run) => async () => ({ rate: 1e6 / (await cpuMicroseconds(run)) });
  const runs = await runPairs(side(ours), side(theirs));
  const { ratios, ...ratio } = ratioOf(runs);
  rows[name] = {
    "CPU µs here": short(1e6 / medianOf(runs.ours, ({ rate }) => rate)),
    "compared with": other,
    "CPU µs there": short(1e6 / medianOf(runs.reference, ({ rate }) => rate)),
    ...ratio,
  };
}

/** Processor time of a call. Native code of sharp runs on other threads of this process, which count too. */
async function cpuMicroseconds(run) {
  const until = performance.now() + 1000 * SECONDS;
  const before = process.cpuUsage();
  let calls = 0;
  for (; performance.now() < until; calls++) {
    const result = run();
    if (result instanceof Promise) await result;
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / calls;
}

/** Functions that packages keep to themselves. */
async function internals() {
  const folder = mkdtempSync(join(root, "bench", "loops-"));
  const entry = "\0entry";
  const sources = [
    ["packages/http/src/json/parse-json.ts", "parseJson"],
    ["packages/http/src/json/write-json.ts", "ByteWriter"],
    ["packages/backends/src/media/image-backend.ts", "pixelWriter, pixelArray"],
  ];
  const code = sources.map(
    ([file, names]) => `export { ${names} } from ${JSON.stringify(join(root, file))};`,
  );
  const build = await rolldown({
    input: entry,
    platform: "node",
    resolve: { extensionAlias: { ".js": [".ts", ".js"] } },
    external: (id) => !/^([./\0]|[A-Za-z]:)/.test(id),
    plugins: [
      {
        name: "entry",
        resolveId: (id) => (id === entry ? id : null),
        load: (id) => (id === entry ? code.join("\n") : null),
      },
    ],
  });
  try {
    const file = join(folder, "internals.mjs");
    await build.write({ file });
    return await import(pathToFileURL(file));
  } finally {
    await build.close();
    rmSync(folder, { recursive: true });
  }
}
