import { describe } from "vitest";
import { testAnswers } from "./answer-tests.js";
import { testErrors } from "./error-tests.js";
import { openConformance } from "./open-conformance.js";

describe("with frontend threads", () => {
  const clientOf = openConformance(2);
  testAnswers(clientOf);
  testErrors(clientOf);
});
