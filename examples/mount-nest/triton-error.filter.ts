import type { ServerResponse } from "node:http";
import { type ArgumentsHost, Catch, type ExceptionFilter } from "@nestjs/common";
import { type ErrorCode, TritonError } from "@tritonjs/core";

/** HTTP statuses of errors that are not the fault of the model. The page of errors lists all codes. */
const STATUSES: Partial<Record<ErrorCode, number>> = {
  INVALID_ARG: 400,
  NOT_FOUND: 404,
  UNAVAILABLE: 503,
};

/** Answers the errors of models: a mistake of the client is not a failure of the server. */
@Catch(TritonError)
export class TritonErrorFilter implements ExceptionFilter<TritonError> {
  catch({ code, message, retryAfterMs }: TritonError, host: ArgumentsHost): void {
    const response = host.switchToHttp().getResponse<ServerResponse>();
    const status = STATUSES[code] ?? 500;
    if (retryAfterMs !== undefined) response.setHeader("retry-after", Math.ceil(retryAfterMs / 1000));
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify({ error: status < 500 ? message : "the model cannot answer" }));
  }
}
