import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { promisedOutput } from "../support/example-readme.js";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";

/** Runs an example to its end, compares its output with its README, and returns its lines. */
async function run(example: string): Promise<string[]> {
  const program = Program.node(
    join(repositoryRoot, "examples", example, "dist", "main.js"),
    [],
    repositoryRoot,
  );
  onTestFinished(() => program.signal("SIGKILL"));
  const { code, stdout, stderr } = await program.ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).toMatch(promisedOutput(example));
  return stdout.trimEnd().split("\n");
}

describe("the pipeline examples", () => {
  it("onnx-pipeline sends text through a callback, an ONNX model and a callback", async () => {
    expect(await run("onnx-pipeline")).toEqual([
      "5.1,3.5,1.4,0.2: setosa (1.00)",
      "6.4,3.2,4.5,1.5: versicolor (1.00)",
      "7.7,2.6,6.9,2.3: virginica (1.00)",
      "in ensemble 'iris-pipeline', a line has four numbers between commas, got '5.1,3.5,one'",
    ]);
  });

  it("image-pipeline sends one picture to a classifier and a segmenter", async () => {
    const lines = await run("image-pipeline");
    expect(lines.slice(0, 8).map((line) => [...new Set(line.split(" "))].join())).toEqual(
      ["s", "s", "s", "s", "s", "s", "m", "b"], // biome-ignore format: rows of the mask
    );
    expect(lines[8]).toMatch(/^sky: (0\.[5-9]|1)/);
    expect(lines.at(-1)).toBe(
      "in ensemble 'picture', input 'image': expected an image (jpeg, png, webp, gif, tiff, avif, bmp), got 10 bytes of something else",
    );
  });

  it("accumulator keeps sums between requests, in a callback and in an ONNX model", async () => {
    expect(await run("accumulator")).toEqual([
      "accumulator: 6, 60, 0.75",
      "accumulator-onnx: 6, 60, 0.75",
      "inference request for sequence 4 to model 'accumulator' must specify the START flag on the first request of the " +
        "sequence",
    ]);
  });

  it("continuous-batching runs 32 texts in one loop, with equal results over SSE and gRPC", async () => {
    const lines = await run("continuous-batching");
    expect(lines.slice(0, 4).map((line) => /^(Alice |The rabbit|Down |Oh dear)./.test(line))).toEqual(
      [true, true, true, true], // biome-ignore format: each goes on
    );
    expect(lines[4]).toBe("SSE and gRPC agree");
    const [, texts, steps, together] = /^(\d+) texts in (\d+) steps, up to (\d+) /
      .exec(lines.at(-1)!)!
      .map(Number);
    expect(texts).toBe(32);
    // One by one, each text would need 60 steps.
    expect(steps).toBeLessThan(32 * 30);
    expect(together).toBeGreaterThan(8);
    expect(together).toBeLessThanOrEqual(32);
  });

  it("text-generation writes eight stories together, and the same story alone", async () => {
    const lines = await run("text-generation");
    expect(lines[0]).toMatch(/ lived in the .* friends from then on\./);
  });
});
