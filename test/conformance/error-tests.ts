import { describe, expect, it } from "vitest";
import type { Client, InferCall, Way } from "./clients/client.js";
import { waysExcept } from "./open-conformance.js";
import { type ExpectedError, failureCases, halfCases, refusalCases } from "./refusal-cases.js";
import { statusFor } from "./status.js";

/** Tests of refusals and failures, with a client for each way to the server. */
export function testErrors(clientOf: (way: Way) => Client): void {
  async function expectRefusal(way: Way, call: InferCall, { code, text }: ExpectedError): Promise<void> {
    const refusal = await clientOf(way)
      .infer(call)
      .then(
        (answer) => answer,
        ({ status, message }) => ({ status, message }),
      );
    expect(refusal).toEqual({ status: statusFor(way, code), message: text });
  }

  describe("a request is rejected with the same code and text over every transport:", () => {
    for (const { title, call, except, unlike, ...expected } of refusalCases) {
      it.each(waysExcept(except))(`${title}, %s`, (way) =>
        expectRefusal(way, call, unlike?.[way] ?? expected),
      );
    }
  });

  describe("a request fails with the model's code and text:", () => {
    for (const { title, call, unlike, ...expected } of failureCases) {
      it.each(waysExcept())(`${title}, %s`, (way) => expectRefusal(way, call, unlike?.[way] ?? expected));
    }
  });

  describe("a client without 16-bit floats reports it:", () => {
    it.each(halfCases)("$title", ({ only, call, ...expected }) => expectRefusal(only, call, expected));
  });
}
