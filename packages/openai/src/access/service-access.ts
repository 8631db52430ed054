import { AccessGate, type InferenceService } from "@tritonjs/core/frontend";
import type { AccessGroup } from "@tritonjs/core/types";
import { firstHeader, headersOf, type V2Request } from "@tritonjs/http/frontend";
import { describeError } from "../errors/error-answer.js";
import { OpenAiError } from "../errors/openai-error.js";
import { bearerOf } from "./openai-access.js";

/** Applies the `security` of the `Triton` to a request, as all frontends do. */
export class ServiceAccess {
  readonly #service: InferenceService;
  readonly #gate: AccessGate;

  constructor(service: InferenceService) {
    this.#service = service;
    this.#gate = new AccessGate(service.restrictions);
  }

  /**
   * Clients of OpenAI can send the access token as their API key.
   *
   * @throws OpenAiError 401 or 403, and the errors of `security.authenticate`
   */
  async check(request: V2Request, group: AccessGroup): Promise<void> {
    const { authentication } = this.#service;
    if (authentication?.guards(group)) {
      const { method, path, remoteAddress } = request;
      const headers = headersOf(request);
      try {
        await authentication.check({ transport: "http", method, path, group, headers, remoteAddress });
      } catch (thrown) {
        const { status, body } = describeError(request, thrown);
        if (status !== 401) throw thrown;
        throw new OpenAiError(401, body.error.message, {
          code: "unauthenticated",
          headers: { "www-authenticate": authentication.challenge },
        });
      }
    }
    const missing = this.#gate.missingHeader(
      group,
      (name) => firstHeader(request, name) ?? bearerOf(request),
    );
    if (missing === undefined) return;
    throw new OpenAiError(403, `This API is restricted, expecting header '${missing}'`, {
      code: "access_restricted",
    });
  }
}
