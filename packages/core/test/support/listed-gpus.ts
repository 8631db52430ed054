import type { Extension } from "@tritonjs/core";

/** GPUs of a server that nothing looks for. */
export function listedGpus(...numbers: number[]): Extension {
  return { name: "listed GPUs", gpus: () => ({ numbers }), attach: () => ({}) };
}
