import { describe, expect, it } from "vitest";
import { metricsFormat } from "../../src/observe/metrics-page.js";

describe("the format of the metrics page", () => {
  it.each([
    [undefined, "prometheus"],
    ["", "prometheus"],
    ["*/*", "prometheus"],
    ["text/plain", "prometheus"],
    ["application/openmetrics-text", "openmetrics"],
    ["Application/OpenMetrics-Text; version=1.0.0", "openmetrics"],
    ["application/openmetrics-text;version=0.0.1", "prometheus"],
    ["application/openmetrics-text;q=0", "prometheus"],
    ["application/openmetrics-text;q=0.3,text/plain;q=0.7", "prometheus"],
    ["application/openmetrics-text;q=many", "prometheus"],
    [
      "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6," +
        "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;q=0.4,*/*;q=0.1",
      "openmetrics",
    ],
  ])("for the header Accept '%s' is %s", (accept, format) => {
    expect(metricsFormat(accept)).toBe(format);
  });
});
