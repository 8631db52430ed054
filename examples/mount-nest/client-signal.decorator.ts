import type { ServerResponse } from "node:http";
import { createParamDecorator, type ExecutionContext } from "@nestjs/common";

/** A parameter with a signal that aborts when the client leaves before it has its answer. */
export const ClientSignal = createParamDecorator((_: unknown, context: ExecutionContext): AbortSignal => {
  const response = context.switchToHttp().getResponse<ServerResponse>();
  const left = new AbortController();
  response.once("close", () => {
    if (!response.writableFinished) left.abort();
  });
  return left.signal;
});
