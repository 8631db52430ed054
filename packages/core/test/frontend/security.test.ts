import { describe, expect, it } from "vitest";
import { AccessGate } from "../../src/frontend/access-gate.js";
import { resolveSecurity } from "../../src/frontend/security.js";
import { ENDPOINT_GROUPS } from "../../src/service/restrictions.js";

const restricted = ["shared-memory", "model-repository", "statistics", "trace", "logging"];

describe("the security of a server", () => {
  it("restricts what changes it or tells about more than models, with a token of its own", () => {
    const { accessToken, restrictions } = resolveSecurity();
    expect(accessToken).toMatch(/^[\w-]{43}$/);
    expect(resolveSecurity().accessToken).not.toBe(accessToken);
    expect(Object.keys(restrictions).sort()).toEqual([...restricted].sort());
    for (const restriction of Object.values(restrictions)) {
      expect(restriction).toEqual({ header: "triton-access-token", value: accessToken });
    }
  });

  it("is as it is told to be", () => {
    const value = "secret";
    const { accessToken, restrictions } = resolveSecurity({
      accessToken: value,
      restrictedEndpoints: ["health"],
    });
    expect(accessToken).toBe(value);
    expect(restrictions).toEqual({ health: { header: "triton-access-token", value } });
    expect(resolveSecurity({ restrictedEndpoints: [] })).toEqual({
      accessToken: undefined,
      restrictions: {},
    });
  });

  it("is refused for unknown groups and an empty token", () => {
    expect(() => resolveSecurity({ restrictedEndpoints: ["stats", "health", "all"] as never })).toThrow(
      "Invalid endpoint names: all, stats. Valid endpoints are: health, inference, logging, metadata, " +
        "model-config, model-repository, shared-memory, statistics, trace",
    );
    expect(() => resolveSecurity({ accessToken: "" })).toThrow("security.accessToken is empty");
  });

  it.each([
    [{ header: "", value: "v" }, "restriction of 'health': expected a header and a value, got header ''"],
    [
      { header: "h", value: "" },
      "restriction of 'health': expected a header and a value, got header 'h' without a value",
    ],
  ])("refuses the restriction %j", (restriction, reason) => {
    expect(() => new AccessGate({ health: restriction })).toThrow(reason);
  });
});

describe("the gate", () => {
  const gate = new AccessGate({ trace: { header: "Key", value: "a=b" } });

  it.each([
    [undefined, "Key"],
    ["", "Key"],
    ["a=", "Key"],
    ["A=B", "Key"],
    ["a=b ", "Key"],
    ["a=b", undefined],
  ])("lets through with the value, exactly: %j", (value, missing) => {
    expect(gate.missingHeader("trace", (header) => (header === "Key" ? value : "a=b"))).toBe(missing);
  });

  it("is open for all other groups", () => {
    for (const group of ENDPOINT_GROUPS.filter((name) => name !== "trace")) {
      expect(gate.guards(group)).toBe(false);
      expect(gate.missingHeader(group, () => undefined)).toBeUndefined();
    }
  });

  it("does not leave open what it does not know", () => {
    expect(() => new AccessGate({ stats: { header: "a", value: "b" } } as never)).toThrow("stats");
  });
});
