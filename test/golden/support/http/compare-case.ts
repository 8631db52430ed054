import { arrangementOf } from "./arrangement.js";
import { compareResponse } from "./compare-response.js";
import { type HttpCase, stepsOf } from "./http-case.js";
import type { HttpResponse } from "./parse-response.js";

/** Lists how the answers to the steps of a case differ from the expected ones. */
export function compareHttpCase(
  intended: HttpCase,
  answers: readonly (HttpResponse | undefined)[],
): string[] {
  const steps = stepsOf(intended);
  return steps.flatMap(({ response }, i) => {
    const found = compareResponse(response, answers[i], arrangementOf(intended));
    return steps.length === 1 ? found : found.map((difference) => `step ${i}: ${difference}`);
  });
}
