import { describe, expect, it } from "vitest";
import { parseVersion } from "../../src/model/pick-version.js";
import { ModelRegistry } from "../../src/model/registry.js";
import { thrownText } from "../support/requests.js";

describe("a version in a request", () => {
  it("is parsed like a C++ number: leading space and sign, then digits", () => {
    expect(["3", " 7", "+2", "3x", "003", "0", "-0"].map((text) => Number(parseVersion(text)))).toEqual([
      3, 7, 2, 3, 3, 0, 0,
    ]);
  });

  it("means the highest version when it is empty", () => {
    expect(parseVersion("")).toBeUndefined();
  });

  it("must be a number", () => {
    expect(thrownText(() => parseVersion("x1"))).toBe(
      "INVALID_ARG failed to get model version from specified version string 'x1' (details: stol), " +
        "version should be an integral value > 0",
    );
    expect(thrownText(() => parseVersion("9223372036854775808"))).toContain("failed to get model version");
  });

  it("must not be negative", () => {
    expect(thrownText(() => parseVersion("-1"))).toBe(
      "INVALID_ARG invalid model version specified '-1' , version should be an integral value > 0",
    );
  });
});

describe("an unknown model", () => {
  it("is reported as NOT_FOUND", () => {
    expect(thrownText(() => new ModelRegistry().find("nope", ""))).toBe(
      "NOT_FOUND Request for unknown model: 'nope' is not found",
    );
  });
});
