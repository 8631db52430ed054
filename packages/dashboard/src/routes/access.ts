import { AccessGate, type Restrictions } from "@tritonjs/core/frontend";
import type { EndpointGroup } from "@tritonjs/core/types";
import { faultAnswer } from "./answers.js";

/** Groups whose data the page shows. A caller needs the headers of those that are restricted. */
const SHOWN: readonly EndpointGroup[] = ["statistics", "model-repository", "logging", "model-config"];

/** Decides which callers get data. The files of the page itself hold none, so everybody gets them. */
export class PageAccess {
  readonly #gate: AccessGate;

  constructor(restrictions: Restrictions) {
    this.#gate = new AccessGate(restrictions);
  }

  /** The refusal of a request for data; undefined if the caller may have them. */
  refusal({ headers }: Request): Response | undefined {
    for (const group of SHOWN) {
      const header = this.#gate.missingHeader(group, (name) => headers.get(name) ?? undefined);
      if (header !== undefined) {
        return faultAnswer(403, `This API is restricted, expecting header '${header}'`, { header });
      }
    }
    return undefined;
  }

  /**
   * The refusal of a request that a page of another site makes. Without it, such a page could load and unload models in
   * the name of an operator whose browser can reach the server.
   */
  foreign({ headers }: Request): Response | undefined {
    const site = headers.get("sec-fetch-site") ?? "same-origin";
    if (site === "same-origin" || site === "none") return undefined;
    return faultAnswer(403, `requests of other sites are refused: expected same-origin, got ${site}`);
  }
}
