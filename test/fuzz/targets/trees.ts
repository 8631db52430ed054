import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type ModelType, TreeModel } from "@tritonjs/backends/trees";
import { expectThat, type FuzzTarget, refusalOf } from "../engine/target.js";
import { bytes } from "../structures/bytes.js";
import type { Structure } from "../structures/structure.js";
import { text } from "../structures/text.js";

/** Formats by the first byte of an input. */
const FORMATS: readonly ModelType[] = [
  "xgboost",
  "xgboost_json",
  "xgboost_ubj",
  "lightgbm",
  "treelite_checkpoint",
];
const ENDINGS = ["model", "json", "ubj", "txt", "tl"];

const LIGHTGBM = `tree
version=v4
num_class=1
num_tree_per_iteration=1
label_index=0
max_feature_idx=1
objective=regression
feature_names=a b
feature_infos=[0:1] [0:1]
tree_sizes=300

Tree=0
num_leaves=3
num_cat=0
split_feature=0 1
split_gain=1 1
threshold=0.5 0.25
decision_type=2 2
left_child=1 -1
right_child=-2 -3
leaf_value=0.1 0.2 0.3
leaf_weight=1 1 1
leaf_count=1 1 1
internal_value=0 0
internal_weight=0 0
internal_count=3 2
is_linear=0
shrinkage=1

end of trees
`;

/** Files of tree ensembles in all formats. A file that is read also predicts. */
export function open(): FuzzTarget {
  const folder = join("packages", "backends", "test", "trees", "fixtures");
  const files = readdirSync(folder).filter((file) => file !== "expected.json");
  const seeds = files.flatMap((file) => {
    const content = readFileSync(join(folder, file));
    const format = ENDINGS.findIndex((ending) => file.endsWith(`.${ending}`));
    return content.length > 24_000 ? [] : [Buffer.concat([Buffer.of(format), content])];
  });
  return {
    seeds: [...seeds, Buffer.concat([Buffer.of(3), Buffer.from(LIGHTGBM)])],
    structure: afterFirstByte,
    maxBytes: 24_000,
    tokens: [
      ...[
        "num_nodes",
        "num_class",
        "base_score",
        "objective",
        "num_target",
        "size_leaf_vector",
        "tree_info",
        "trees",
      ],
      ...[
        "left_children",
        "right_children",
        "split_indices",
        "categories",
        "default_left",
        "cats",
        "NaN",
        "1e999",
      ],
      ...[
        "split_feature=",
        "left_child=",
        "num_leaves=",
        "decision_type=",
        "multi:softmax",
        "binary:logistic",
        "dart",
      ],
      ...["[$d#L", "[$l#I", "{", "}", "L", "#", "$", "N", "S"],
      Buffer.of(0x7f, 0xff, 0xff, 0xff),
      Buffer.of(0xff, 0xff, 0xff, 0x7f),
    ],
    run(input) {
      const type = FORMATS[(input[0] ?? 0) % FORMATS.length]!;
      let model: TreeModel;
      try {
        model = new TreeModel({ model: input.subarray(1), modelType: type });
      } catch (error) {
        return `${type} ${refusalOf(error)}`;
      }
      // A file may claim any number of columns; a request would have to send them.
      if (model.features > 10_000) return `${type} read`;
      const answers = model.predict(new Float32Array(2 * model.features).fill(Number.NaN, 0, model.features));
      expectThat(
        answers.length === 2 * model.columns,
        () => `${answers.length} answers, not ${2 * model.columns}`,
      );
      return `${type} read`;
    },
  };
}

/** The first byte is the format, which decides the form of the rest. */
const afterFirstByte: Structure = {
  mutate(input, source) {
    const format = input[0] ?? 0;
    const isText = format % FORMATS.length === 1 || format % FORMATS.length === 3;
    const inner = source.random.chance(0.02) ? bytes : isText ? text : bytes;
    const rest = inner.mutate(input.subarray(1), { ...source, other: source.other.subarray(1) });
    return Buffer.concat([Buffer.of(format), rest]);
  },
};
