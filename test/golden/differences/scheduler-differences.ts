import { batchRules } from "./scheduler/batches.js";
import { cacheRules } from "./scheduler/cached-answers.js";
import { cancellations } from "./scheduler/cancelled-requests.js";
import { ensembleOutputs } from "./scheduler/ensemble-outputs.js";
import { failures } from "./scheduler/failed-requests.js";
import type { ScenarioDifference } from "./scheduler/outcome-draft.js";
import { refusalRules } from "./scheduler/refusals.js";
import { missingInputsBrackets } from "./texts.js";

/** Differences of the schedulers from the recorded ones. */
export const schedulerDifferences: readonly ScenarioDifference[] = [
  missingInputsBrackets(),
  ...ensembleOutputs,
  ...failures,
  ...cancellations,
  ...cacheRules,
  ...batchRules,
  ...refusalRules,
];
