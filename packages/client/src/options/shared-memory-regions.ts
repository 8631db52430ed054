/** A region of system shared memory to register. */
export interface SystemRegion {
  /** Key of the memory object: `/my_region`. */
  readonly key: string;
  readonly byteSize: number;
  /** Offset of the region in the object, in bytes. @default 0 */
  readonly offset?: number;
}

/** A region of CUDA shared memory to register. */
export interface CudaRegion {
  /** The bytes of its `cudaIpcMemHandle_t`, or their base64. */
  readonly rawHandle: Uint8Array | string;
  readonly deviceId: number;
  readonly byteSize: number;
}
