import type { Gpus } from "@tritonjs/core/extension";
import type { CudaPools } from "./cuda-pools.js";

/** The pools of memory of a server for tensors on its GPUs; undefined without `gpu()`. */
export function poolsOf(gpus: (Gpus & { readonly pools?: CudaPools }) | undefined): CudaPools | undefined {
  return gpus?.pools;
}
