import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { TreeModel } from "../../../src/trees/index.js";
import { detectModelType } from "../../../src/trees/read-forest.js";
import { outcomeOfDamage } from "../support/damage.js";
import { treeliteCheckpoint, ubjson, xgboostDocument } from "../support/write-models.js";

const files = ["binary.json", "binary.ubj", "binary.model", "random-forest.tl", "categorical.ubj"];
const bytesOf = (file: string) =>
  new Uint8Array(readFileSync(new URL(`../fixtures/${file}`, import.meta.url)));

describe.each(files)("the file %s", (file) => {
  const bytes = bytesOf(file);
  const type = detectModelType(bytes);

  test("is refused when it is cut anywhere", () => {
    const lengths = Array.from({ length: 25 }, (_, i) => Math.floor((i * bytes.length) / 25));
    for (const length of [...lengths, bytes.length - 1]) {
      expect(outcomeOfDamage(bytes.subarray(0, length), type), `${length} bytes`).not.toBe("read");
    }
  });

  test("is refused or still a model when bits are flipped", () => {
    const flips = fc.array(fc.nat(8 * bytes.length - 1), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(flips, (bits) => {
        const damaged = bytes.slice();
        for (const bit of bits) damaged[bit >> 3]! ^= 1 << (bit & 7);
        outcomeOfDamage(damaged, type);
      }),
      { numRuns: 25 },
    );
  });

  test("is refused when it is read as another format", () => {
    for (const other of [
      "xgboost",
      "xgboost_json",
      "xgboost_ubj",
      "lightgbm",
      "treelite_checkpoint",
    ] as const) {
      if (other !== type) expect(outcomeOfDamage(bytes, other)).not.toBe("read");
    }
  });
});

const leaf = (value: number) => ({ leaf: [value], cover: 1 });
const split = { feature: 0, threshold: 1, missingGoLeft: true, left: leaf(1), right: leaf(2), cover: 2 };
const plain = { features: 2, groups: 1, trees: [split] };

/** The reason why a document of XGBoost is refused after a change. */
function reasonOf(
  change: (document: ReturnType<typeof xgboostDocument>, tree: Record<string, unknown[]>) => void,
): string {
  const document = xgboostDocument(plain);
  change(document, document.learner.gradient_booster.model.trees[0] as unknown as Record<string, unknown[]>);
  return reasonOfFile(Buffer.from(JSON.stringify(document)));
}

function reasonOfFile(model: Uint8Array): string {
  try {
    new TreeModel({ model });
  } catch (error) {
    const { code, message } = error as { code: string; message: string };
    return `${code} ${message}`;
  }
  return "nothing";
}

describe("a model that is not a forest of trees is refused, and the reason says where:", () => {
  test("a cycle", () => {
    expect(reasonOf((_, tree) => tree.left_children!.splice(0, 1, 0))).toBe(
      "INVALID_ARG tree 0, node 0: its child 0 has another parent, so this is not a tree",
    );
  });

  test("a node with two parents", () => {
    expect(reasonOf((_, tree) => tree.left_children!.splice(0, 1, 2))).toMatch(
      /its child 2 has another parent/,
    );
  });

  test("a child beyond the tree", () => {
    expect(reasonOf((_, tree) => tree.right_children!.splice(0, 1, 9))).toBe(
      "INVALID_ARG tree 0, node 0: expected a child from 0 to 2, got 9",
    );
  });

  test.each([Number.NaN, null, "1"])("the threshold %s", (threshold) => {
    expect(reasonOf((_, tree) => tree.split_conditions!.splice(0, 1, threshold))).toBe(
      "INVALID_ARG tree 0, node 0: threshold: expected a number, got NaN",
    );
  });

  test("a leaf that is not a number", () => {
    expect(reasonOf((_, tree) => tree.split_conditions!.splice(1, 1, null))).toBe(
      "INVALID_ARG tree 0, node 1: leaf: expected a number, got NaN",
    );
  });

  test("a feature that the model does not have", () => {
    expect(reasonOf((_, tree) => tree.split_indices!.splice(0, 1, 2))).toBe(
      "INVALID_ARG tree 0, node 0: expected a feature from 0 to 1, got 2",
    );
  });

  test("lists of different lengths", () => {
    expect(reasonOf((_, tree) => tree.default_left!.pop())).toBe(
      "INVALID_ARG XGBoost model.trees[0].default_left: expected 3 elements, got 2",
    );
  });

  test("counts that the file does not have", () => {
    const classes = (document: ReturnType<typeof xgboostDocument>) => document.learner.learner_model_param;
    expect(reasonOf((document) => Object.assign(classes(document), { num_class: "9000000" }))).toBe(
      "INVALID_ARG number of classes: expected one for each tree at most, got 9000000",
    );
    expect(reasonOf((document) => Object.assign(classes(document), { num_class: "900000000000" }))).toMatch(
      /^INVALID_ARG number of classes: /,
    );
    expect(reasonOf((document) => Object.assign(classes(document), { num_feature: "0" }))).toBe(
      "INVALID_ARG number of features: expected at least 1, got 0",
    );
    const huge = Buffer.concat([
      Buffer.from("{L"),
      Buffer.from([0, 0, 0, 0, 0, 0, 0, 1]),
      Buffer.from("a[$d#L"),
      Buffer.alloc(8, 0x7f),
    ]);
    expect(reasonOfFile(huge)).toMatch(/^INVALID_ARG XGBoost UBJSON: /);
  });

  test("a document that nests without end", () => {
    expect(reasonOfFile(Buffer.from(`{"learner":${"[".repeat(200_000)}`))).toMatch(/^INVALID_ARG /);
    const deep = Buffer.concat([Buffer.from("{i"), Buffer.from([1]), Buffer.from(`a${"[".repeat(200_000)}`)]);
    expect(reasonOfFile(deep)).toMatch(/expected at most 64 levels, got more/);
  });

  test("a booster that is not made of trees", () => {
    expect(
      reasonOf((document) => Object.assign(document.learner.gradient_booster, { name: "gblinear" })),
    ).toBe("UNSUPPORTED Only GBTree or DART boosters are currently supported. Got: gblinear");
  });

  test("an objective and several targets", () => {
    expect(reasonOf((document) => Object.assign(document.learner.objective, { name: "reg:mine" }))).toBe(
      "UNSUPPORTED Unrecognized XGBoost objective: reg:mine",
    );
    expect(
      reasonOf((document) => Object.assign(document.learner.learner_model_param, { num_target: "2" })),
    ).toBe("UNSUPPORTED Multi-target model not supported: num_target is 2");
  });

  test("a field that may change predictions", () => {
    const document = { ...xgboostDocument(plain), twist: 1 };
    const model = Buffer.from(JSON.stringify(document));
    expect(reasonOfFile(model)).toMatch(
      /^INVALID_ARG XGBoost model: key "twist" is not recognized! To ignore it, /,
    );
    expect(new TreeModel({ model, allowUnknownFields: true }).predict(Float32Array.of(0, 0))).toEqual(
      Float32Array.of(1),
    );
  });

  test("another version of Treelite", () => {
    const bytes = treeliteCheckpoint(plain);
    expect(reasonOfFile(Uint8Array.from(bytes, (byte, i) => (i === 0 ? 3 : byte)))).toMatch(
      /^UNSUPPORTED Cannot load model from a different major Treelite version\. Expected: 4\.x, got: 3\.1\.2\./,
    );
  });

  test("something else altogether", () => {
    expect(reasonOfFile(new Uint8Array())).toMatch(
      /^INVALID_ARG expected a model of XGBoost, LightGBM or Treelite/,
    );
    expect(reasonOfFile(Buffer.from("[]"))).toMatch(/^INVALID_ARG expected a model/);
    expect(reasonOfFile(ubjson({ a: "b" }))).toBe(
      "INVALID_ARG XGBoost model: expected the field 'learner', got none",
    );
    expect(reasonOfFile(Buffer.alloc(1000, "x"))).toMatch(/^INVALID_ARG XGBoost binary: the file is cut off/);
  });
});

test("a leaf at the end of a chain as deep as the file allows is reached", () => {
  const depth = 5_000;
  let node: Parameters<typeof treeliteCheckpoint>[0]["trees"][number] = leaf(7);
  for (let i = 0; i < depth; i++) node = { ...split, threshold: 1, left: node, right: leaf(i) };
  const document = xgboostDocument({ ...plain, trees: [node] });
  const model = new TreeModel({ model: Buffer.from(JSON.stringify(document)) });
  expect(model.predict(Float32Array.of(0, 0))).toEqual(Float32Array.of(7));
});
