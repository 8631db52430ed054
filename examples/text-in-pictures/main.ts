/* Reads the text in pictures. `npm start -- photo.jpg` reads pictures of your own. */
import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import { Triton } from "@tritonjs/core";
import { bindReader } from "./pipeline.js";

const given = process.argv.slice(2);
const names = ["invoice", "sign", "receipt"];
const paths =
  given.length > 0 ? given : names.map((name) => new URL(`../pictures/${name}.png`, import.meta.url));
const files = await Promise.all(paths.map((path) => readFile(path)));

await using triton = new Triton();
const { reader, recognise } = bindReader(triton);
await triton.ready();

interface Text {
  readonly lines: readonly string[];
  /** Left and top of each line, in pixels. */
  readonly corners: readonly string[];
}

/** Reads one picture. */
async function read(file: Uint8Array): Promise<Text> {
  const { lines, boxes } = await reader.infer({ image: [file] });
  const texts = lines.strings();
  return { lines: texts, corners: texts.map((_, i) => `${boxes.get(i, 0)}, ${boxes.get(i, 1)}`) };
}

/** Runs the reader, and counts the batches of lines. */
async function measure(run: () => Promise<Text[]>) {
  const before = recognise.statistics().executionCount;
  const begin = performance.now();
  const texts = await run();
  const ms = (performance.now() - begin).toFixed(0);
  return { texts, summary: `${recognise.statistics().executionCount - before} batches of lines, ${ms} ms` };
}

// The first run of each network is slower.
await read(files[0]!);
const alone = await measure(async () => {
  const texts: Text[] = [];
  for (const file of files) texts.push(await read(file));
  return texts;
});
const together = await measure(() => Promise.all(files.map(read)));

for (const [i, { lines, corners }] of together.texts.entries()) {
  console.log(`${basename(paths[i]!.toString())}:`);
  for (const [j, line] of lines.entries()) console.log(`  ${line} (at ${corners[j]})`);
}
const linesOf = (texts: readonly Text[]) => texts.flatMap(({ lines }) => lines);
console.log(`${files.length} pictures with ${linesOf(together.texts).length} lines`);
console.log(`one after another: ${alone.summary}`);
console.log(`all at once: ${together.summary}`);
const same = linesOf(alone.texts).join("\n") === linesOf(together.texts).join("\n");
console.log(`both read the same: ${same ? "yes" : "no"}`);
console.log(await read(Buffer.from("no picture")).catch((error: Error) => error.message));
