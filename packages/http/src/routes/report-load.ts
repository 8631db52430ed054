import { LOAD_REPORT_FORMAT_HEADER, LOAD_REPORT_HEADER, writeLoadReport } from "@tritonjs/core/frontend";
import { firstHeader } from "../exchange/request.js";
import type { V2Response } from "../exchange/response.js";
import type { Exchange, Route } from "./route.js";

/**
 * A handler of an inference route that adds the load of the model to its answers for clients that ask for it. The load
 * is the one at the start of the answer.
 */
export function reportingLoad(handle: Route["handle"]): Route["handle"] {
  return (exchange) => {
    const format = firstHeader(exchange.request, LOAD_REPORT_FORMAT_HEADER);
    return format === undefined ? handle(exchange) : withReport(exchange, format, handle);
  };
}

async function withReport(exchange: Exchange, format: string, handle: Route["handle"]): Promise<V2Response> {
  const response = await handle(exchange);
  const { service, model, version } = exchange;
  const report = await service.loadReport?.(model, version).catch(() => undefined);
  const text = report && writeLoadReport(report, format);
  if (text === undefined) return response;
  return { ...response, headers: { ...response.headers, [LOAD_REPORT_HEADER]: text } };
}
