import type { Fields } from "./fields.js";

/** Fields of OpenAI's clients that do not concern a model. They are accepted without a warning. */
const WITHOUT_EFFECT = [
  "user",
  "metadata",
  "store",
  "service_tier",
  "safety_identifier",
  "prompt_cache_key",
  "prompt_cache_retention",
] as const;

/** Marks the fields that are accepted without effect as read. */
export function acceptCommonFields(fields: Fields): void {
  for (const name of WITHOUT_EFFECT) fields.any(name);
}
