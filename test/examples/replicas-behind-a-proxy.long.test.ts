import { describe, it } from "vitest";
import { programOf } from "../deploy/front-proxy.js";
import { expectPromisedOutput } from "../support/example-run.js";

describe("the example replicas-behind-a-proxy", () => {
  for (const product of ["haproxy", "nginx"]) {
    const missing = programOf(product) === undefined;
    it.skipIf(missing)(
      `keeps sequences together behind ${product}${missing ? ` (skipped: no ${product} here)` : ""}`,
      () => expectPromisedOutput("replicas-behind-a-proxy", product),
    );
  }
});
