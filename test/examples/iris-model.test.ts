import { readFile } from "node:fs/promises";
import { InferenceSession, Tensor } from "onnxruntime-node";
import { describe, expect, it } from "vitest";
import { irisSpecies, parseIris } from "../../examples/quickstart/iris/iris-data.js";
import { trainIris } from "../../examples/quickstart/iris/train-iris.js";

const folder = new URL("../../examples/quickstart/iris/", import.meta.url);
const csvText = await readFile(new URL("iris.csv", folder), "utf8");
const modelBytes = new Uint8Array(await readFile(new URL("iris.onnx", folder)));
const flowers = parseIris(csvText);

async function classify(rows: readonly (readonly number[])[]) {
  const session = await InferenceSession.create(modelBytes);
  try {
    const measurements = new Tensor("float32", Float32Array.from(rows.flat()), [rows.length, 4]);
    const { probabilities, species } = await session.run({ measurements });
    return { probabilities: probabilities!, species: species! };
  } finally {
    await session.release();
  }
}

describe("the iris data", () => {
  it("has 50 flowers of each of the three species", () => {
    expect(flowers).toHaveLength(150);
    for (const species of irisSpecies.keys()) {
      expect(flowers.filter((flower) => flower.species === species)).toHaveLength(50);
    }
  });

  it("is Fisher's: with the two rows that some copies have wrong, and his means of setosa", () => {
    expect(flowers[34]?.measurements).toEqual([4.9, 3.1, 1.5, 0.2]);
    expect(flowers[37]?.measurements).toEqual([4.9, 3.6, 1.4, 0.1]);
    const setosa = flowers.filter((flower) => flower.species === 0);
    const means = [0, 1, 2, 3].map(
      (column) => setosa.reduce((sum, flower) => sum + flower.measurements[column]!, 0) / setosa.length,
    );
    expect(means.map((mean) => mean.toFixed(3))).toEqual(["5.006", "3.428", "1.462", "0.246"]);
  });

  it("is rejected with the line number of an unreadable line", () => {
    const header = "sepal_length,sepal_width,petal_length,petal_width,species";
    expect(() => parseIris("a,b\n")).toThrow("line 1");
    expect(() => parseIris(`${header}\n5.1,3.5,1.4,0.2,setosa\n5.1,3.5,1.4,setosa\n`)).toThrow("line 3");
    expect(() => parseIris(`${header}\n5.1,3.5,1.4,wide,setosa\n`)).toThrow("line 2");
    expect(() => parseIris(`${header}\n5.1,3.5,,0.2,setosa\n`)).toThrow("line 2");
    expect(() => parseIris(`${header}\n5.1,3.5,1.4,0.2,tulip\n`)).toThrow("line 2");
  });
});

describe("the iris model", () => {
  it("equals the result of the training script, byte for byte", () => {
    expect(Buffer.from(trainIris(csvText)).equals(modelBytes)).toBe(true);
  });

  it("classifies at least 97 of 100 flowers correctly", async () => {
    const { species } = await classify(flowers.map((flower) => flower.measurements));
    const right = flowers.filter((flower, row) => Number(species.data[row]) === flower.species);
    expect(right.length / flowers.length).toBeGreaterThanOrEqual(0.97);
  });

  it.each([1, 7, 150])("answers a batch of %i with a row per flower", async (batch) => {
    const { probabilities, species } = await classify(
      flowers.slice(-batch).map((flower) => flower.measurements),
    );
    expect([probabilities.type, probabilities.dims]).toEqual(["float32", [batch, 3]]);
    expect([species.type, species.dims]).toEqual(["int64", [batch, 1]]);
    for (let row = 0; row < batch; row++) {
      const chances = Array.from(probabilities.data.slice(3 * row, 3 * row + 3), Number);
      expect(chances[0]! + chances[1]! + chances[2]!).toBeCloseTo(1, 5);
      expect(Number(species.data[row])).toBe(chances.indexOf(Math.max(...chances)));
    }
  });
});
