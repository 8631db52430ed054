import { acceptedModels } from "./loads/accepted-models.js";
import type { LoadDifference } from "./loads/load-draft.js";
import { otherTexts } from "./loads/other-texts.js";
import { refusedModels } from "./loads/refused-models.js";
import { missingInputsBrackets } from "./texts.js";

/** Differences in loading and rejecting models from the recorded server. */
export const loadDifferences: readonly LoadDifference[] = [
  missingInputsBrackets(),
  ...otherTexts,
  ...refusedModels,
  ...acceptedModels,
];
