/*
 * The naive server: fastify, and `session.run` for each request on the main thread. It takes and answers the same bytes
 * as tritonjs.
 */

import { serveWithFastify } from "../support/fastify-infer.mjs";
import { openSession } from "../support/onnx-session.mjs";
import { answerCalls, eventLoopDelay, programOptions } from "../support/program.mjs";

const { model } = programOptions();
const { elements, run } = await openSession(model);
const url = await serveWithFastify(model, elements, run);

answerCalls({ url: () => url, delay: eventLoopDelay() });
