/*
 * A server of node:http alone. It reads the body into one buffer and answers prepared bytes. With `json` it parses the
 * body and prints the answer of an FP32 identity model, with the same digits.
 */
import { createServer } from "node:http";
import { answerCalls, programOptions } from "../support/program.mjs";

const { json } = programOptions();
let headers = {};
let answer = Buffer.alloc(0);

const server = createServer((request, response) => {
  const chunks = [];
  request.on("data", (chunk) => chunks.push(chunk));
  request.on("end", () => {
    const bytes = chunks.length === 1 ? chunks[0] : Buffer.concat(chunks);
    if (!json) {
      response.writeHead(200, headers);
      response.end(answer);
      return;
    }
    const [{ datatype, shape, data }] = JSON.parse(bytes.toString("utf8")).inputs;
    const outputs = [{ name: "y", datatype, shape, data: Array.from(Float32Array.from(data)) }];
    const text = Buffer.from(JSON.stringify({ model_name: "large", model_version: "1", outputs }));
    response.writeHead(200, { "content-type": "application/json", "content-length": text.length });
    response.end(text);
  });
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));

answerCalls({
  url: () => `http://127.0.0.1:${server.address().port}`,
  answerWith(given, body) {
    headers = given;
    answer = Buffer.from(body, "base64");
  },
});
