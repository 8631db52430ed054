import { TritonError } from "@tritonjs/protocol";

/** Groups of endpoints that can be restricted, with the names of Triton's OpenAI frontend. */
export const OPENAI_GROUPS = ["inference", "model-repository", "metrics", "health"] as const;

/**
 * A group of endpoints: `inference` generates and embeds, `model-repository` is all of `/v1/models`, `metrics` and
 * `health` are the two pages.
 */
export type OpenAiGroup = (typeof OPENAI_GROUPS)[number];

/**
 * Checks that all names are groups.
 *
 * @throws TritonError INVALID_ARG for an unknown group, which would stay open
 */
export function checkOpenAiGroups(names: readonly string[], option: string): void {
  for (const name of names) {
    if (OPENAI_GROUPS.some((group) => group === name)) continue;
    throw new TritonError(
      "INVALID_ARG",
      `${option}: expected one of ${OPENAI_GROUPS.join(", ")}, got '${name}'`,
      {
        reason: "INVALID_OPTION",
      },
    );
  }
}
