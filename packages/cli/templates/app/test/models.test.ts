import assert from "node:assert/strict";
import { after, test } from "node:test";
import { Models } from "../src/models.js";

const models = new Models();
after(() => models.close());

test("the classifier tells small from large", async () => {
  assert.equal(await models.classify([5, 3, 1, 0]), "small");
  assert.equal(await models.classify([0, 1, 2, 3]), "large");
});
