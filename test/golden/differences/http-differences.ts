import type { Models } from "../support/served-models.js";
import type { HttpDifference } from "./http/http-draft.js";
import { inferenceRules } from "./http/inference.js";
import { protocolRules } from "./http/protocol.js";
import { statisticsRules } from "./http/statistics.js";
import { missingInputsBrackets } from "./texts.js";

/** Differences of the HTTP frontend from the recorded one, for the recorded models. */
export function httpDifferences(models: Models): readonly HttpDifference[] {
  return [missingInputsBrackets(), ...protocolRules, ...inferenceRules(models), ...statisticsRules];
}
