import { expect, test } from "vitest";
import { closestName } from "../../src/closest-name.js";

const KNOWN = ["modelName", "inferFunc", "inputs", "outputs", "config", "http-port", "http-address"];

test.each([
  ["modelname", "modelName"],
  ["model_name", "modelName"],
  ["inferFn", "inferFunc"],
  ["infer_func", "inferFunc"],
  ["inptus", "inputs"],
  ["ouput", "outputs"],
  ["confg", "config"],
  ["http-prot", "http-port"],
  ["httpPort", "http-port"],
  ["port", "http-port"],
  ["name", "modelName"],
])("finds the name that %s is a misspelling of", (given, meant) => {
  expect(closestName(given, KNOWN)).toBe(meant);
});

test.each(["", "x", "verbose", "grpc-port-range"])("finds no name for %j, which resembles none", (given) => {
  expect(closestName(given, KNOWN)).toBeUndefined();
});
