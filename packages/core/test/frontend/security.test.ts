import { describe, expect, it } from "vitest";
import { resolveSecurity } from "../../src/frontend/security.js";
import { AccessGate, ENDPOINT_GROUPS } from "../../src/service/access-control.js";

const restricted = ["shared-memory", "model-repository", "statistics", "trace", "logging"];

describe("the security options of a server", () => {
  it("protect endpoints that change the server or describe more than models, with a random token", () => {
    const { accessToken, restrictions } = resolveSecurity();
    expect(accessToken).toMatch(/^[\w-]{43}$/);
    expect(resolveSecurity().accessToken).not.toBe(accessToken);
    expect(Object.keys(restrictions).sort()).toEqual([...restricted].sort());
    for (const restriction of Object.values(restrictions)) {
      expect(restriction).toEqual({ header: "triton-access-token", value: accessToken, isGenerated: true });
    }
  });

  it("use the given token and restrictions", () => {
    const value = "secret";
    const { accessToken, restrictions } = resolveSecurity({
      accessToken: value,
      restrictedEndpoints: ["health"],
    });
    expect(accessToken).toBe(value);
    expect(restrictions).toEqual({ health: { header: "triton-access-token", value, isGenerated: false } });
    expect(resolveSecurity({ restrictedEndpoints: [] })).toEqual({
      accessToken: undefined,
      restrictions: {},
      allowedHosts: [],
    });
  });

  it("reject unknown groups and an empty token", () => {
    expect(() => resolveSecurity({ restrictedEndpoints: ["stats", "health", "all"] as never })).toThrow(
      "Invalid endpoint names: all, stats. Valid endpoints are: health, inference, logging, metadata, " +
        "model-config, model-repository, shared-memory, statistics, trace",
    );
    expect(() => resolveSecurity({ accessToken: "" })).toThrow(
      "security.accessToken: expected a secret, got an empty string",
    );
  });

  it.each([
    [{ header: "", value: "v" }, "restriction of 'health': expected a header and a value, got header ''"],
    [
      { header: "h", value: "" },
      "restriction of 'health': expected a header and a value, got header 'h' without a value",
    ],
  ])("reject the restriction %j", (restriction, reason) => {
    expect(() => new AccessGate({ health: restriction })).toThrow(reason);
  });
});

describe("the access gate", () => {
  const gate = new AccessGate({ trace: { header: "Key", value: "a=b" } });

  it.each([
    [undefined, "Key"],
    ["", "Key"],
    ["a=", "Key"],
    ["A=B", "Key"],
    ["a=b ", "Key"],
    ["a=b", undefined],
  ])("lets a request through only with the exact value: %j", (value, missing) => {
    expect(gate.missingHeader("trace", (header) => (header === "Key" ? value : "a=b"))).toBe(missing);
  });

  it("is open for all other groups", () => {
    for (const group of ENDPOINT_GROUPS.filter((name) => name !== "trace")) {
      expect(gate.guards(group)).toBe(false);
      expect(gate.missingHeader(group, () => undefined)).toBeUndefined();
    }
  });

  it("rejects unknown endpoint groups", () => {
    expect(() => new AccessGate({ stats: { header: "a", value: "b" } } as never)).toThrow("stats");
  });
});
