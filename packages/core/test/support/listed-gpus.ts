import type { Extension } from "@tritonjs/core";

/** GPUs of a server that nothing looks for. */
export function listedGpus(...numbers: number[]): Extension {
  const namesOf = (id: number) => ({
    executionProviders: [{ name: "cuda", deviceId: id }, "cpu"],
    torch: `cuda:${id}`,
    environment: { CUDA_VISIBLE_DEVICES: String(id) },
  });
  return { name: "listed GPUs", gpus: () => ({ numbers, namesOf }), attach: () => ({}) };
}
