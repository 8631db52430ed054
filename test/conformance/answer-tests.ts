import { describe, expect, it } from "vitest";
import { answerCases } from "./answer-cases.js";
import type { Client, Way } from "./clients/client.js";
import { identityCases, noTextCase } from "./data-type-cases.js";
import { waysExcept } from "./open-conformance.js";

/** Tests of answers, with a client for each way to the server. */
export function testAnswers(clientOf: (way: Way) => Client): void {
  describe("an identity model returns", () => {
    for (const { title, call, unlike } of [...identityCases, noTextCase]) {
      it.each(waysExcept(unlike))(`${title}, %s`, async (way) => {
        const { outputs } = await clientOf(way).infer(call);
        expect(outputs).toEqual([{ ...call.inputs[0], name: "y" }]);
      });
    }
  });

  describe("a model answers", () => {
    for (const { title, call, outputs, answer, except } of answerCases) {
      it.each(waysExcept(except))(`${title}, %s`, async (way) => {
        const { outputs: got, ...rest } = await clientOf(way).infer(call);
        expect(got).toEqual(outputs);
        if (answer !== undefined && way !== "in process") expect(rest).toEqual(answer);
      });
    }
  });
}
