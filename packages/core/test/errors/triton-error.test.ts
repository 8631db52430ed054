import { describe, expect, it } from "vitest";
import { TritonError } from "../../src/errors/triton-error.js";

describe("TritonError", () => {
  it("is recognised by its brand, even from another copy of the library", () => {
    expect(TritonError.is(new TritonError("INTERNAL", "x"))).toBe(true);
    expect(TritonError.is({ [Symbol.for("tritonjs.error")]: true })).toBe(true);
    for (const other of [new Error("x"), undefined, null, "x", {}]) expect(TritonError.is(other)).toBe(false);
  });

  it("wraps any thrown value and keeps it as the cause", () => {
    const cause = new TypeError("wrong");
    expect(TritonError.from(cause)).toMatchObject({ code: "INTERNAL", message: "wrong", cause });
    expect(TritonError.from("text", "UNKNOWN")).toMatchObject({ code: "UNKNOWN", message: "text" });
    expect(TritonError.from(undefined).message).toBe("undefined");
    expect(TritonError.from(new RangeError()).message).toBe("RangeError");
  });

  it("passes through unchanged when a model throws it", () => {
    const error = new TritonError("NOT_FOUND", "no such user");
    expect(TritonError.from(error)).toBe(error);
  });
});
