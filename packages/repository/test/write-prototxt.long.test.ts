import { TritonError } from "@tritonjs/protocol";
import { toConfigJson } from "@tritonjs/protocol/config";
import { describe, expect, it } from "vitest";
import { randomConfig, randomSource } from "../../core/test/support/random-config.js";
import { configFromJson } from "../src/config/config-from-json.js";
import { readPrototxt, writePrototxt } from "../src/config/prototxt.js";

const SEEDS = Array.from({ length: 200 }, (_, seed) => seed);

describe("a random configuration", () => {
  it("survives writing and reading as text", () => {
    for (const seed of SEEDS) {
      const config = randomConfig(randomSource(seed));
      expect(readPrototxt(writePrototxt(config)), `seed ${seed}`).toEqual(config);
    }
  });

  it("is written the same after it was read", () => {
    for (const seed of SEEDS) {
      const text = writePrototxt(randomConfig(randomSource(seed)));
      expect(writePrototxt(readPrototxt(text)), `seed ${seed}`).toBe(text);
    }
  });

  it("survives its JSON form", () => {
    for (const seed of SEEDS) {
      const json = toConfigJson(randomConfig(randomSource(seed)));
      expect(toConfigJson(configFromJson(JSON.stringify(json))), `seed ${seed}`).toEqual(json);
    }
  });
});

const SNIPPETS = [
  "{",
  "}",
  "[",
  "]",
  "<",
  ">",
  ":",
  ",",
  ";",
  '"',
  "'",
  "\\",
  "#",
  "\n",
  "\0",
  "-",
  "0x",
  "1e",
  "\xff",
  "name",
];

/** The text with a few pieces cut out, doubled, or inserted. */
function mutated(text: string, random: () => number): string {
  let result = text;
  for (let i = 0; i < 4; i++) {
    const at = Math.floor(random() * result.length);
    const end = at + Math.floor(random() * 12);
    const kind = random();
    const snippet = SNIPPETS[Math.floor(random() * SNIPPETS.length)]!;
    if (kind < 0.4) result = result.slice(0, at) + snippet + result.slice(at);
    else if (kind < 0.7) result = result.slice(0, at) + result.slice(end);
    else result = result.slice(0, end) + result.slice(at);
  }
  return result;
}

describe("a damaged text", () => {
  it("is read as a configuration or rejected with a position", () => {
    let refused = 0;
    for (const seed of Array.from({ length: 1000 }, (_, i) => i)) {
      const random = randomSource(seed);
      const text = mutated(writePrototxt(randomConfig(random)), random);
      try {
        const config = readPrototxt(text);
        expect(readPrototxt(writePrototxt(config)), `seed ${seed}`).toEqual(config);
      } catch (error) {
        if (!TritonError.is(error)) throw error;
        refused++;
        expect(error.code).toBe("INVALID_ARG");
        expect(error.message).toMatch(/^Error parsing text-format inference\.ModelConfig: \d+:\d+: /);
      }
    }
    expect(refused).toBeGreaterThan(300);
  });

  it("is read or rejected in its JSON form, too", () => {
    for (const seed of Array.from({ length: 600 }, (_, i) => i)) {
      const random = randomSource(seed);
      const text = mutated(JSON.stringify(toConfigJson(randomConfig(random))), random);
      try {
        configFromJson(text);
      } catch (error) {
        if (!TritonError.is(error)) throw error;
        expect(error.code).toBe("INVALID_ARG");
      }
    }
  });
});
