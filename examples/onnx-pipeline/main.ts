/* Pre-processing -> ONNX model -> post-processing, as one model from text to text. */
import { Triton } from "@tritonjs/core";
import { bindIrisPipeline } from "./pipeline.js";

await using triton = new Triton();
const pipeline = bindIrisPipeline(triton);

const lines = ["5.1,3.5,1.4,0.2", "6.4,3.2,4.5,1.5", "7.7,2.6,6.9,2.3"];
const answers = await Promise.all(lines.map((line) => pipeline.inferSample({ line: [line] })));
for (const [i, { species, confidence }] of answers.entries()) {
  console.log(`${lines[i]}: ${species.text()} (${confidence.get(0).toFixed(2)})`);
}
const refused = await pipeline.inferSample({ line: ["5.1,3.5,one"] }).catch((error: Error) => error.message);
console.log(refused);
