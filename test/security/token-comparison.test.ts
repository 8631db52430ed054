import crypto from "node:crypto";
import { syncBuiltinESMExports } from "node:module";
import { expect, it, onTestFinished, vi } from "vitest";

it("every check of a token compares in constant time, whatever is sent", async () => {
  const compare = vi.spyOn(crypto, "timingSafeEqual");
  syncBuiltinESMExports();
  onTestFinished(() => {
    compare.mockRestore();
    syncBuiltinESMExports();
  });
  const { AccessGate } = await import("../../packages/core/src/service/access-control.js");
  const { Secret } = await import("../../packages/llm/src/openai/openai-access.js");
  const gate = new AccessGate({ trace: { header: "key", value: "secret" } });
  const secret = new Secret("secret");
  for (const sent of ["secret", "secre", "secret!", "", "x".repeat(10_000)]) {
    compare.mockClear();
    const isRight = sent === "secret";
    expect(gate.missingHeader("trace", () => sent)).toBe(isRight ? undefined : "key");
    expect(secret.isEqual(sent)).toBe(isRight);
    expect(compare).toHaveBeenCalledTimes(2);
    for (const [one, other] of compare.mock.calls) expect(one.byteLength).toBe(other.byteLength);
  }
});
