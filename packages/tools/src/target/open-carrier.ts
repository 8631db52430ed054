import type { Carrier, EndListener } from "./carrier.js";
import type { RemoteCarrierPlan } from "./carrier-plan.js";
import { HttpCarrier } from "./http/http-carrier.js";
import { JSON_STAMPS } from "./http/http-templates.js";
import { InferAnswers } from "./http/infer-answers.js";
import { StampedRequests } from "./wire/stamped-requests.js";

/** Opens the carrier of a thread. */
export function openCarrier(plan: RemoteCarrierPlan, seed: number, onEnd: EndListener): Carrier {
  const { endpoint, templates, handling, expected, maxConnections } = plan;
  const requests = new StampedRequests(templates, JSON_STAMPS, seed);
  const answers = () => new InferAnswers(expected, handling);
  return new HttpCarrier({ endpoint, requests, answers, maxConnections }, onEnd);
}
