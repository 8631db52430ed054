import { doubleText } from "@tritonjs/protocol";
import fc from "fast-check";
import { expect, it } from "vitest";
import { parseJson } from "../../src/json/parse-json.js";
import { decodeText, encodeText } from "../../src/json/text.js";
import { ByteWriter } from "../../src/json/write-json.js";

it("text decoding turns any bytes into strings and back", () => {
  fc.assert(
    fc.property(fc.uint8Array(), (bytes) => {
      expect(new Uint8Array(encodeText(decodeText(bytes)))).toEqual(bytes);
    }),
  );
});

it("text decoding keeps valid text unchanged", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (text) => {
      expect(decodeText(Buffer.from(text))).toBe(text);
      expect(encodeText(text)).toEqual(Buffer.from(text));
    }),
  );
});

it("ByteWriter writes strings that read back as the same bytes", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 3000 }), (bytes) => {
      const written = new ByteWriter().stringBytes(bytes).bytes();
      expect(new Uint8Array(parseJson(written) as Uint8Array)).toEqual(bytes);
    }),
  );
});

it("ByteWriter escapes the characters that Triton escapes, in upper case", () => {
  const written = new ByteWriter().string('"\\/\b\f\n\r\t\u0001\u001f\u007f\u2028é').bytes();
  expect(written.toString()).toBe('"\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001F\u007f\u2028é"');
});

it("doubleText prints doubles that read back as the same double", () => {
  fc.assert(
    fc.property(fc.double(), (value) => {
      expect(Number(doubleText(value))).toEqual(value);
      expect(doubleText(value)).toMatch(/[.eN]|Infinity/);
    }),
  );
});

it.each([
  [1, "1.0"],
  [-0, "-0.0"],
  [0.1, "0.1"],
  [1e-6, "0.000001"],
  [1e-7, "1e-7"],
  [1e20, "100000000000000000000.0"],
  [1e21, "1e21"],
  [Number.NaN, "NaN"],
  [-Infinity, "-Infinity"],
])("doubleText prints %d as %s", (value, text) => {
  expect(doubleText(value)).toBe(text);
});
