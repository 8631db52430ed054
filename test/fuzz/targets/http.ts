import { connect } from "node:net";
import { http } from "@tritonjs/http";
import { expectThat, type FuzzTarget } from "../engine/target.js";
import { httpMessage, httpStructure } from "../structures/http-message.js";
import { text } from "../structures/text.js";
import { expectGoodAnswer } from "../support/answers.js";
import { readHttpAnswers } from "../support/http-answers.js";
import { openIdentityModels, V2_TOKENS } from "../support/identity-models.js";
import { CONTROL_SEEDS, GENERATE_SEEDS, INFER_SEEDS, V2_HEADERS } from "../support/v2-seeds.js";

/** HTTP/1 over real sockets: each input is what a client sends on a connection before it ends its half. */
export async function open(): Promise<FuzzTarget> {
  const { triton } = await openIdentityModels();
  const frontend = http({ port: 0, maxInputSize: 1 << 20, metrics: true, openApi: true });
  const { addresses } = await triton.serve({ frontends: [frontend] });
  const { port } = addresses.http!;
  const send = async (input: Uint8Array) => readHttpAnswers(await exchange(port, input), input);
  const good = INFER_SEEDS[0]!;
  return {
    seeds: [
      ...INFER_SEEDS,
      ...GENERATE_SEEDS,
      ...CONTROL_SEEDS,
      Buffer.concat([httpMessage("GET /v2/health/live"), good]),
      Buffer.from(
        "POST /v2/models/fp32/infer HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nx: y\r\n\r\n",
      ),
    ],
    tokens: [
      ...V2_TOKENS,
      "HTTP/1.0",
      "HTTP/1.1",
      "HTTP/2.0",
      "\r\n",
      "\n",
      ": ",
      "chunked",
      "0\r\n\r\n",
      ...V2_HEADERS,
    ],
    structure: httpStructure(text, V2_HEADERS),
    lanes: 16,
    async run(input) {
      const answers = await send(input);
      for (const answer of answers) if (answer.status !== 417) expectGoodAnswer(answer);
      return (
        answers
          .map(({ status }) => status)
          .slice(0, 3)
          .join(" ") || "closed"
      );
    },
    async check() {
      const [answer] = await send(good);
      expectThat(
        answer?.status === 200 && answer.body.includes('"data":[1.0,-2.5,30000001024.0]'),
        () => `${answer?.status} ${answer?.body.toString()}`,
      );
    },
    close: () => triton.close(),
  };
}

/** Sends bytes, ends this half of the connection, and resolves with what comes until the server ends the other. */
function exchange(port: number, input: Uint8Array): Promise<Buffer> {
  return new Promise((resolve) => {
    const parts: Buffer[] = [];
    const socket = connect({ port, host: "127.0.0.1" });
    socket.on("data", (part) => void parts.push(part));
    // The server may reset the connection when it does not read all that was sent.
    socket.on("error", () => {});
    socket.on("close", () => resolve(Buffer.concat(parts)));
    socket.end(input);
  });
}
