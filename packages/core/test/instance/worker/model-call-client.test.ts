import { describe, expect, it } from "vitest";
import type { FromWorker } from "../../../src/worker/messages.js";
import { CallsToModels } from "../../../src/worker/model-calls.js";

describe("a call of another model from a worker", () => {
  it.each(["before it is sent", "while it runs"])(
    "rejects with an AbortError when it is aborted %s",
    async (when) => {
      const sent: FromWorker[] = [];
      const calls = new CallsToModels((message) => sent.push(message));
      const controller = new AbortController();
      const reason = new Error("enough");
      if (when === "before it is sent") controller.abort(reason);
      const answer = calls.of(0).infer("m", {}, { signal: controller.signal });
      controller.abort(reason);
      await expect(answer).rejects.toMatchObject({ name: "AbortError", code: "CANCELLED", cause: reason });
      expect(sent.map(({ type }) => type)).toEqual(when === "before it is sent" ? [] : ["call", "end"]);
    },
  );
});
