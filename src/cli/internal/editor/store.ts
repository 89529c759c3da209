/** The sessions of the user, for all sessions of an editor. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { SessionStore } from "../../../core/SessionStore.ts"
import { placesOf } from "../config/places.ts"
import { sessions } from "../work/app.ts"

/** Opens the store of the user. It is the same in every folder. */
export const openStore = Effect.map(
  Effect.suspend(() => Layer.build(sessions(placesOf(process.cwd())))),
  (built) => Context.get(built, SessionStore)
)
