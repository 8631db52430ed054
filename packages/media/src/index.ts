/*
 * `@tritonjs/media`: backends that prepare images and audio for models.
 */
import type { BackendFactory } from "@tritonjs/core/backend";
import { audioRepositoryBackend } from "./audio/repository-model.js";
import { imageRepositoryBackend } from "./image/repository-model.js";

export { audio } from "./audio/audio.js";
export type { AudioFeatures, AudioLog, AudioOptions } from "./audio/audio-options.js";
export { image } from "./image/image.js";
export type {
  ImageFit,
  ImageFormat,
  ImageKernel,
  ImageOptions,
  ImagePosition,
} from "./image/image-options.js";
export type { MelScale } from "./signal/mel-filters.js";

/** Backends for models of a repository, by the name in `config.pbtxt`. */
export const repositoryBackends: Readonly<Record<string, BackendFactory>> = {
  image: imageRepositoryBackend,
  audio: audioRepositoryBackend,
};
