import { testAnswers } from "./answer-tests.js";
import { testErrors } from "./error-tests.js";
import { openConformance } from "./open-conformance.js";

const clientOf = openConformance();
testAnswers(clientOf);
testErrors(clientOf);
