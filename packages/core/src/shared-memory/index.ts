/*
 * Shared memory objects for clients: `@tritonjs/core/shared-memory`.
 */
export { type CreateRegionOptions, SharedMemoryRegion } from "./shared-memory-region.js";
