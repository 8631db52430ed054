import { encodeBytes } from "@tritonjs/protocol";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  JsonDouble,
  JsonObject,
  type JsonValue,
  PackedNumbers,
  PackedStrings,
} from "../../src/json/json-value.js";
import { elementsOf, jsonSteps, parseJson } from "../../src/json/parse-json.js";
import { decodeText } from "../../src/json/text.js";

function plain(value: JsonValue): unknown {
  if (value instanceof JsonDouble) return value.value;
  if (value instanceof Uint8Array) return decodeText(value);
  if (value instanceof JsonObject) return [...value].map(([name, member]) => [name, plain(member)]);
  if (Array.isArray(value) || value instanceof PackedNumbers || value instanceof PackedStrings)
    return elementsOf(value).map(plain);
  return value;
}

/** Reads a document in steps of a few bytes; also returns the number of steps. */
function inSteps(text: string, stepBytes: number): { value: JsonValue; steps: number } {
  const reading = jsonSteps(Buffer.from(text), 2 ** 20, stepBytes);
  for (let steps = 1; ; steps++) {
    const { done, value } = reading.next();
    if (done) return { value, steps };
  }
}

function outcome(read: () => JsonValue): unknown {
  try {
    return plain(read());
  } catch (thrown) {
    return (thrown as Error).message;
  }
}

const scalars = fc.oneof(
  fc.integer(),
  fc.double({ noNaN: true }),
  fc.boolean(),
  fc.string(),
  fc.constant(null),
);
const rows = fc.oneof(
  fc.array(fc.oneof(fc.integer(), fc.bigInt(0n, 2n ** 64n - 1n).map(String))),
  fc.array(fc.array(fc.string())),
  fc.array(fc.array(fc.boolean())),
  fc.array(fc.oneof(scalars, fc.array(scalars))),
);
const texts = fc
  .oneof(fc.jsonValue(), fc.dictionary(fc.string(), rows))
  .map((value) => JSON.stringify(value));
const mutated = fc
  .tuple(texts, fc.nat(), fc.constantFrom("", ...'{}[]",:0-.eE \\x'))
  .map(([text, at, put]) => {
    const place = at % (text.length + 1);
    return text.slice(0, place) + put + text.slice(place + 1);
  });

describe("a document that is read in steps", () => {
  it("has the same values and faults as one that is read at once, wherever the steps end", () => {
    fc.assert(
      fc.property(fc.oneof(texts, mutated), fc.integer({ min: 1, max: 40 }), (text, stepBytes) => {
        expect(outcome(() => inSteps(text, stepBytes).value)).toEqual(
          outcome(() => parseJson(Buffer.from(text))),
        );
      }),
    );
  });

  it("takes a step for each part of a long array", () => {
    for (const element of ["1", "0.5", '"a"', "true", "[1]", "{}", "9007199254740993", "1e5"]) {
      const text = `{"data":[${Array(10_000).fill(element)}]}`;
      // One call of the inner loop for numbers may read 4096 of them.
      expect(inSteps(text, 100).steps, element).toBeGreaterThanOrEqual(4);
    }
  });

  it("packs arrays of strings into the wire form of a tensor", () => {
    fc.assert(
      fc.property(fc.array(fc.array(fc.string(), { minLength: 1 }), { minLength: 1 }), (strings) => {
        const { value } = inSteps(JSON.stringify(strings), 16);
        const packed = value as PackedStrings;
        expect(Buffer.compare(packed.bytes, encodeBytes(strings.flat().map((one) => Buffer.from(one))))).toBe(
          0,
        );
        expect(packed.length).toBe(strings.length);
      }),
    );
  });

  it("has at most 2,097,152 strings in arrays", () => {
    const strings = (count: number) => `["",${'"",'.repeat(count - 2)}""]`;
    expect((inSteps(strings(2 ** 21), 1 << 20).value as PackedStrings).length).toBe(2 ** 21);
    expect(() => inSteps(strings(2 ** 21 + 1), 1 << 20)).toThrow(
      "request JSON: expected at most 2097152 strings in arrays, got more",
    );
  });
});
