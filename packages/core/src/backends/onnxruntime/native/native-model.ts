import type { SessionData } from "../create-session.js";
import { NativeExecutor, type NativeSurroundings } from "./native-executor.js";
import { type NativeSession, openNativeSession } from "./native-session.js";
import type { OrtApi } from "./ort-api.js";
import { SharedSession } from "./shared-session.js";

/** A model whose instances share one session. */
export class NativeModel {
  #session: SharedSession | undefined;
  #isOpened = false;

  /** @param data makes the settings of the session */
  constructor(private readonly data: () => SessionData) {}

  /** Opens the session to describe the model. It stays open until `dropOpened`. */
  async open(api: OrtApi): Promise<NativeSession> {
    const session = await this.#shared(api).acquire();
    this.#isOpened = true;
    return session;
  }

  /** Gives up the session that describes the model. Instances keep it open. */
  readonly dropOpened = async (): Promise<void> => {
    if (!this.#isOpened) return;
    this.#isOpened = false;
    await this.#session?.release();
  };

  executor(api: OrtApi, surroundings: NativeSurroundings): NativeExecutor {
    const session = this.#shared(api);
    return new NativeExecutor(session, this.data(), { ...surroundings, dropOpened: this.dropOpened });
  }

  #shared(api: OrtApi): SharedSession {
    this.#session ??= new SharedSession(() => openNativeSession(api, this.data()));
    return this.#session;
  }
}
