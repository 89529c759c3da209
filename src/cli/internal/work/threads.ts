/** Creates, finds and describes the threads of the user. */
import * as Clock from "effect/Clock"
import * as SecureRandom from "effect/crypto/SecureRandom"
import * as Effect from "effect/Effect"
import type { Service, Thread } from "../../../core/SessionStore.ts"
import type { Places } from "../config/places.ts"
import { fail, orFail } from "../failure.ts"
import type { App } from "./app.ts"

const letters = "abcdefghijkmnpqrstuvwxyz23456789"

/** Makes an id that people can read and type: the day and six characters. */
export const newId = Effect.map(Clock.currentTimeMillis, (now) => {
  const day = new Date(now).toISOString().slice(0, 10).replaceAll("-", "")
  const random = [...SecureRandom.randomBytesUnsafe(6)].map((byte) => letters[byte % letters.length]).join("")
  return `${day}-${random}`
})

/** Creates a thread of an agent in a folder. */
export const create = Effect.fnUntraced(function* (
  store: Service,
  { context, model, name }: Pick<App, "context" | "model" | "name">,
  title: string
) {
  const threadId = yield* newId
  const metadata = { title, folder: context.places.project, agent: name, model }
  yield* orFail("failed")(store.create({ threadId, metadata }))
  return threadId
})

const textOf = ({ metadata }: Thread, key: string): string => {
  const value = metadata[key]
  return typeof value === "string" ? value : ""
}

export const titleOf = (thread: Thread): string => textOf(thread, "title")
export const folderOf = (thread: Thread): string => textOf(thread, "folder")
export const agentOf = (thread: Thread): string => textOf(thread, "agent")

/** Finds the last thread of the folder. */
export const lastOf = Effect.fnUntraced(function* (store: Service, places: Places) {
  const { items } = yield* orFail("failed")(store.list({ where: { folder: places.project }, limit: 1 }))
  const [last] = items
  return last ?? (yield* fail("usage", `There is no session of ${places.project} yet; deepagents begins one`))
})

/** Finds a thread by its id, or by a unique beginning or end of it. */
export const find = Effect.fnUntraced(function* (store: Service, id: string) {
  const exact = yield* Effect.option(store.info(id))
  if (exact._tag === "Some") return exact.value
  const { items } = yield* orFail("failed")(store.list({ limit: 1000 }))
  const matches = items.filter(({ threadId }) => threadId.startsWith(id) || threadId.endsWith(id))
  const [one] = matches
  if (one !== undefined && matches.length === 1) return one
  return yield* fail(
    "usage",
    matches.length === 0
      ? `There is no session ${JSON.stringify(id)}; deepagents sessions lists them`
      : `${matches.length} sessions begin or end with ${JSON.stringify(id)}: ${matches
          .slice(0, 5)
          .map(({ threadId }) => threadId)
          .join(", ")}`
  )
})
