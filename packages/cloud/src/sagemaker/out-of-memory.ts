/** Texts by which frameworks say that memory is used up, as Triton knows them. */
const TEXTS = [
  "CUDA out of memory",
  "CUDA_OUT_OF_MEMORY",
  "Out of memory",
  "Out Of Memory",
  "out of memory",
  "MemoryError",
  "OutOfMemory",
  "OOM",
  "Dst tensor is not initialized",
  "Src tensor is not initialized",
  "CNMEM_STATUS_OUT_OF_MEMORY",
  "CUDNN_STATUS_NOT_INITIALIZED",
  "CUBLAS_STATUS_ALLOC_FAILED",
  "CUBLAS_STATUS_NOT_INITIALIZED",
  "Failed to allocate memory",
  "failed to allocate memory",
  "No space left on device",
];

/** Whether an error says that memory is used up. The platform then unloads another model, and tries again. */
export function isOutOfMemory(message: string): boolean {
  return TEXTS.some((text) => message.includes(text));
}
