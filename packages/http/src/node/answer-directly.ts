import type { RequestListener } from "node:http";
import type { V2Handler } from "../v2-handler.js";
import { NodeV2Request } from "./node-request.js";
import { sendAnswer } from "./send-answer.js";

/** Answers the requests of a server of Node, with nothing in between. */
export function answerDirectly(handler: V2Handler): RequestListener {
  return (incoming, outgoing) => {
    handler(new NodeV2Request(incoming, outgoing, ""))
      .then((response) => {
        if (response !== undefined) sendAnswer(outgoing, response);
      })
      .catch((error: Error) => outgoing.destroy(error));
  };
}
