import { readFileSync } from "node:fs";
import { parseIris } from "../../examples/quickstart/iris/iris-data.js";

const folder = new URL("../../examples/quickstart/iris/", import.meta.url);

/** The ONNX classifier of the quick start: a model that runs in worker threads. */
export const irisModel = new URL("iris.onnx", folder);

/** Rows of measurements for it. */
export const flowers: readonly (readonly number[])[] = parseIris(
  readFileSync(new URL("iris.csv", folder), "utf8"),
).map(({ measurements }) => measurements);
