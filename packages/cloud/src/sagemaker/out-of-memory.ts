/** Out-of-memory messages of frameworks: the list of Triton. */
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

/** True for an out-of-memory message. The platform then unloads another model, and tries again. */
export function isOutOfMemory(message: string): boolean {
  return TEXTS.some((text) => message.includes(text));
}
