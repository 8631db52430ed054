import {
  AccessGate,
  HostRule,
  type InferenceService,
  isForeign,
  type Restrictions,
  SiteGuard,
} from "@tritonjs/core/frontend";
import type { EndpointGroup } from "@tritonjs/core/types";
import { faultAnswer } from "./answers.js";

/** Groups whose data the page shows. A caller needs the headers of those that are restricted. */
const SHOWN: readonly EndpointGroup[] = ["statistics", "model-repository", "logging", "model-config"];

/** Decides which callers get data. The files of the page itself hold none, so everybody gets them. */
export class PageAccess {
  readonly #gate: AccessGate;
  readonly #hosts: HostRule;
  readonly #sites: SiteGuard;
  /** Whether no group needs a header. */
  readonly #open: boolean;

  constructor(service: Pick<InferenceService, "allowedHosts" | "restrictions">, restrictions: Restrictions) {
    const gate = new AccessGate(restrictions);
    this.#gate = gate;
    this.#hosts = new HostRule(service.allowedHosts);
    this.#sites = new SiteGuard({ service, restrictions });
    this.#open = !SHOWN.some((group) => gate.guards(group));
  }

  /** The refusal of a request for data, or of a change; undefined if the caller may make it. */
  refusal(request: Request): Response | undefined {
    const sent = (name: string) => request.headers.get(name) ?? undefined;
    for (const group of SHOWN) {
      const header = this.#gate.missingHeader(group, sent);
      if (header !== undefined) {
        return faultAnswer(403, `This API is restricted, expecting header '${header}'`, { header });
      }
    }
    const fault = this.#sites.fault(request, sent, "model-repository");
    return fault === undefined ? undefined : faultAnswer(403, fault);
  }

  /**
   * The refusal of a request that a page of another site makes. Without it, such a page could load and unload models in
   * the name of an operator whose browser can reach the server. If no header is needed, requests to unknown names of
   * the server are refused too: such a name may be one that another site lets lead here.
   */
  foreign(request: Request): Response | undefined {
    const header = (name: string) => request.headers.get(name) ?? undefined;
    const host = this.#open ? this.#hosts.fault(header("host")) : undefined;
    if (host !== undefined) return faultAnswer(403, host);
    const origin = header("origin");
    const site = header("sec-fetch-site");
    if (
      isForeign(origin, site, header("host")) &&
      !(origin !== undefined && this.#hosts.allowsOrigin(origin))
    ) {
      const from = site ?? origin;
      return faultAnswer(403, `requests of other sites are refused: expected same-origin, got ${from}`);
    }
    return undefined;
  }
}
