import { describe, expect, it } from "vitest";
import { TritonError } from "../../src/errors/triton-error.js";

describe("an error", () => {
  it("is known by its brand, also when it comes from another copy of the library", () => {
    expect(TritonError.is(new TritonError("INTERNAL", "x"))).toBe(true);
    expect(TritonError.is({ [Symbol.for("tritonjs.error")]: true })).toBe(true);
    for (const other of [new Error("x"), undefined, null, "x", {}]) expect(TritonError.is(other)).toBe(false);
  });

  it("is made of anything that was thrown, which is kept as its cause", () => {
    const cause = new TypeError("wrong");
    expect(TritonError.from(cause)).toMatchObject({ code: "INTERNAL", message: "wrong", cause });
    expect(TritonError.from("text", "UNKNOWN")).toMatchObject({ code: "UNKNOWN", message: "text" });
    expect(TritonError.from(undefined).message).toBe("undefined");
    expect(TritonError.from(new RangeError()).message).toBe("RangeError");
  });

  it("stays what it is when it is thrown by a model", () => {
    const error = new TritonError("NOT_FOUND", "no such user");
    expect(TritonError.from(error)).toBe(error);
  });
});
