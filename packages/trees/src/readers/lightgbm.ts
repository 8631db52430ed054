import type { Forest } from "../forest/forest.js";
import { ForestBuilder } from "../forest/forest-builder.js";
import { assertGroupCount } from "../forest/group-count.js";
import { invalidModel, notSupported } from "../forest/invalid-model.js";
import { LineFields } from "../formats/line-fields.js";
import { lightgbmObjective } from "./lightgbm-objective.js";
import { lightgbmTree } from "./lightgbm-tree.js";
import { roundCount } from "./round-count.js";
import type { TreeFileOptions } from "./tree-file-options.js";

/**
 * Reads the text of `Booster.save_model("model.txt")` of LightGBM: lines `key=value`, first of the model, then of each
 * tree.
 *
 * @throws TritonError INVALID_ARG for a broken file; UNSUPPORTED for linear trees and objectives that cannot be served
 */
export function readLightgbm(bytes: Uint8Array, options: TreeFileOptions): Forest {
  const [head, ...trees] = sections(new TextDecoder().decode(bytes));
  const classes = head!.integer("num_class");
  const perRound = head!.has("num_tree_per_iteration") ? head!.integer("num_tree_per_iteration") : classes;
  assertGroupCount(classes, trees.length, 1);
  if (perRound !== classes)
    throw invalidModel(
      `LightGBM: num_tree_per_iteration: expected ${classes}, the number of classes, got ${perRound}`,
    );
  const { link, task } = lightgbmObjective(head!.text("objective", ""), classes);
  const averages = head!.has("average_output");
  // The leaves of a random forest of an old release are converted already.
  const isConverted = averages && head!.text("version", "") === "v2";
  const builder = new ForestBuilder({
    features: head!.integer("max_feature_idx") + 1,
    groups: classes,
    task,
    link: isConverted ? { name: "identity" } : link,
    base: new Float64Array(classes),
    averages,
    single: false,
    leafWidth: 1,
  });
  const used = roundCount(trees.length, classes, options.rounds, () => undefined);
  for (let i = 0; i < used; i++) {
    const fields = trees[i]!;
    if (fields.has("is_linear") && fields.integer("is_linear") !== 0)
      throw notSupported(
        `LightGBM: tree ${i} has linear models in its leaves: expected constants (linear_tree=false)`,
      );
    builder.add(lightgbmTree(fields, i % classes));
  }
  return builder.build();
}

/** The line after the trees. Releases before 2.2 write only the heading of what follows. */
const END_OF_TREES = /^(end of trees|feature[ _]importances:)$/;

/** The lines before the first tree, and those of each tree. */
function sections(text: string): LineFields[] {
  const found = [new LineFields("LightGBM")];
  for (const raw of text.split("\n")) {
    const line = raw.trimEnd();
    if (END_OF_TREES.test(line)) return found;
    if (line.startsWith("Tree=")) found.push(new LineFields(`LightGBM tree ${found.length - 1}`));
    else if (line !== "") found.at(-1)!.add(line);
  }
  throw invalidModel("LightGBM: the file is cut off: expected the line 'end of trees', got none");
}
