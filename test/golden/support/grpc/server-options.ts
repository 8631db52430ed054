import type { GrpcOptions } from "@tritonjs/grpc";

type Restriction = NonNullable<GrpcOptions["restrictedProtocols"]>[number];

/**
 * Turns the flags of a recorded server into options of the frontend; flags that only choose models have no effect. A
 * server without restrictions of its own has the library's.
 */
export function serverOptions(flags: readonly string[]): GrpcOptions {
  const restrictedProtocols: Restriction[] = [];
  let headerForwardPattern: string | undefined;
  for (const flag of flags) {
    const [, name, value = ""] = /^--([^=]+)=(.*)$/.exec(flag) ?? [];
    if (name === "grpc-header-forward-pattern") headerForwardPattern = value;
    if (name === "grpc-restricted-protocol") restrictedProtocols.push(restrictionOf(value));
  }
  return { headerForwardPattern, ...(restrictedProtocols.length === 0 ? {} : { restrictedProtocols }) };
}

/** `health,metadata:key=value`: the groups, then the header that they require. */
function restrictionOf(text: string): Restriction {
  const [, groups = "", key = "", value = ""] = /^([^:]+):([^=]+)=(.*)$/.exec(text) ?? [];
  return { protocols: groups.split(",") as unknown as Restriction["protocols"], key, value };
}
