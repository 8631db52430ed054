import { testAnswers } from "./answer-tests.js";
import { openConformance } from "./open-conformance.js";

testAnswers(openConformance());
