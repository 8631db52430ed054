import { testErrors } from "./error-tests.js";
import { openConformance } from "./open-conformance.js";

testErrors(openConformance());
