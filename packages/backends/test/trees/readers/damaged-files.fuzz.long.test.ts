import { readdirSync, readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, test } from "vitest";
import { detectModelType } from "../../../src/trees/read-forest.js";
import { outcomeOfDamage } from "../support/damage.js";
import { anyForest } from "../support/plain-forest.js";
import { lightgbmText } from "../support/write-models.js";

const folder = new URL("../fixtures/", import.meta.url);
const fixtures = readdirSync(folder).filter((file) => file !== "expected.json");
const [lightgbm] = fc.sample(anyForest({ precision: "double", categories: true, vectors: false }), {
  seed: 3,
  numRuns: 1,
});
const files = new Map([
  ...fixtures.map((file) => [file, new Uint8Array(readFileSync(new URL(file, folder)))] as const),
  ["a LightGBM text", Buffer.from(lightgbmText(lightgbm!))] as const,
]);

describe.each([...files])("the file %s", (_, bytes) => {
  const type = detectModelType(bytes);
  const change = fc.oneof(
    fc.record({ at: fc.nat(bytes.length - 1), value: fc.nat(255) }),
    fc.record({
      at: fc.nat(bytes.length - 1),
      value: fc.constantFrom(0, 0x7f, 0x80, 0xff, 0x2d, 0x39, 0x5b, 0x7b),
    }),
  );

  test("is refused or still a model after any change, cut or repetition", () => {
    const damage = fc.record({
      changes: fc.array(change, { maxLength: 12 }),
      cut: fc.option(fc.nat(bytes.length), { nil: bytes.length }),
      from: fc.nat(bytes.length),
      removed: fc.oneof(fc.constant(0), fc.nat(40)),
    });
    fc.assert(
      fc.property(damage, ({ changes, cut, from, removed }) => {
        const damaged = Uint8Array.from(bytes);
        for (const { at, value } of changes) damaged[at] = value;
        outcomeOfDamage(
          Buffer.concat([damaged.subarray(0, from), damaged.subarray(from + removed)]).subarray(0, cut),
          type,
        );
      }),
      { numRuns: 600 },
    );
  });
});

test("any bytes are refused or a model in every format", () => {
  const types = ["xgboost", "xgboost_json", "xgboost_ubj", "lightgbm", "treelite_checkpoint"] as const;
  fc.assert(
    fc.property(fc.constantFrom(...types), fc.uint8Array({ maxLength: 600 }), (type, bytes) => {
      outcomeOfDamage(bytes, type);
    }),
    { numRuns: 20_000 },
  );
});
