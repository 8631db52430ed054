import type { Authentication } from "@tritonjs/core/frontend";
import type { Call, CallHeaders } from "../transport/call.js";
import type { Method } from "../transport/method.js";

/** Puts the authentication of the server in front of the methods that it guards. */
export function authenticated(
  methods: readonly Method[],
  authentication: Authentication | undefined,
): Method[] {
  if (authentication === undefined) return [...methods];
  return methods.map((method) =>
    authentication.guards(method.protocol)
      ? { ...method, admit: (call) => check(authentication, method, call) }
      : method,
  );
}

async function check(
  authentication: Authentication,
  { path, protocol }: Method,
  { headers, remoteAddress }: Call,
): Promise<void> {
  await authentication.check({
    transport: "grpc",
    method: "POST",
    path,
    group: protocol,
    headers: headersOf(headers),
    remoteAddress,
  });
}

function headersOf(sent: CallHeaders): Headers {
  const headers = new Headers();
  for (const [name, value] of sent.entries()) headers.append(name, value);
  return headers;
}
