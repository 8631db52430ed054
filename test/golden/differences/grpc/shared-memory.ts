import type { GrpcCase } from "../../support/grpc/grpc-case.js";
import type { Draft } from "../difference.js";
import { answerStatus, detailsOf, type GrpcDifference } from "./grpc-draft.js";

const BAD_KEY = /^Unable to open shared memory region: '(\/?triton_python_backend_shm_region_.*)'$/;
const RESERVED = "triton_python_backend_shm_region_";

const sharedMemoryKey: GrpcDifference = {
  rule: "shared-memory-key",
  applies: (recorded) => BAD_KEY.test(detailsOf(recorded)),
  amend(draft) {
    const [, key = ""] = BAD_KEY.exec(detailsOf(draft)) as RegExpExecArray;
    const name = String(draft.request?.name ?? "");
    const text = `cannot register shared memory region '${name}' with key '${key}' as the key contains the reserved prefix '${RESERVED}'`;
    answerStatus(draft, "INVALID_ARGUMENT", text);
  },
};

function isSecondName({ rpc, flags, note = "" }: GrpcCase): boolean {
  const isRegistration = rpc === "SystemSharedMemoryRegister" && (flags?.includes("bug") ?? false);
  return isRegistration && /key that is registered already/.test(note);
}

/** A memory object can be registered under two names: it is listed until it is unregistered. */
function twoNames(cases: readonly GrpcCase[]): GrpcDifference {
  const missing = (recorded: GrpcCase | Draft<GrpcCase>) => {
    if (recorded.rpc !== "SystemSharedMemoryStatus" || recorded.status?.code !== "OK") return [];
    const before = cases.slice(
      0,
      cases.findIndex(({ id }) => id === recorded.id),
    );
    const registered = before.filter((one) => one.group === recorded.group && isSecondName(one));
    return registered.filter((one) => {
      const name = one.request?.name;
      const asked = recorded.request?.name;
      const since = before.slice(before.indexOf(one) + 1);
      const isGone = since.some(
        ({ rpc, request, status, group }) =>
          rpc === "SystemSharedMemoryUnregister" &&
          group === recorded.group &&
          status?.code === "OK" &&
          [undefined, "", name].includes(request?.name as string | undefined),
      );
      return !isGone && (asked === undefined || asked === "" || asked === name);
    });
  };
  return {
    rule: "shared-memory-two-names",
    applies: (recorded) => isSecondName(recorded) || missing(recorded).length > 0,
    amend(draft) {
      if (isSecondName(draft as GrpcCase)) {
        draft.status = { code: "OK", details: "" };
        draft.response = {} as typeof draft.response;
        return;
      }
      const response = draft.response as { regions?: Record<string, unknown> };
      for (const { request } of missing(draft)) {
        const { name, key, byte_size } = request as Record<string, string>;
        response.regions = { ...response.regions, [name as string]: { name, key, byte_size } };
      }
    },
  };
}

interface Input {
  readonly parameters?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly shape: readonly string[];
}

/** An offset counts from the start of the region: the page holds the numbers from 0 on. */
const registeredOffset: GrpcDifference = {
  rule: "registered-offset",
  applies: ({ rpc, flags, note = "", status }) =>
    rpc === "ModelInfer" &&
    (flags?.includes("bug") ?? false) &&
    status?.code === "OK" &&
    /adds the registered offset twice/.test(note),
  amend(draft) {
    const [input] = (draft.request?.inputs ?? []) as unknown as Input[];
    const first = Number(input?.parameters?.shared_memory_offset?.int64_param ?? 0) / 4;
    const count = Number(input?.parameters?.shared_memory_byte_size?.int64_param ?? 0) / 4;
    const data = Int32Array.from({ length: count }, (_, i) => first + i);
    const contents = [Buffer.from(data.buffer).toString("base64")];
    (draft.response as Record<string, unknown>).raw_output_contents = contents;
  },
};

/** Rules about shared memory. */
export function sharedMemoryRules(cases: readonly GrpcCase[]): readonly GrpcDifference[] {
  return [sharedMemoryKey, twoNames(cases), registeredOffset];
}
