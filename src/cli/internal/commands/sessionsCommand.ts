/** `deepagents sessions`: the stored threads. */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import type { AiMessage, Message } from "../../../core/Message.ts"
import * as Messages from "../../../core/Message.ts"
import { SessionStore, type Thread } from "../../../core/SessionStore.ts"
import * as ToolCall from "../../../core/ToolCall.ts"
import { loadThread } from "../../../sessions/journal.ts"
import * as Sessions from "../../../sessions/SessionStore.ts"
import { oneLine, visible } from "../../../support/text/untrusted.ts"
import type { Places } from "../config/places.ts"
import { type Address, addressOf } from "../config/storeAddress.ts"
import { fail, orFail } from "../failure.ts"
import { ago, print, printJson, table, writeAll } from "../output.ts"
import { sessions } from "../work/app.ts"
import { hold } from "../work/hold.ts"
import * as Threads from "../work/threads.ts"

const withStore = <A, E, R>(places: Places, effect: Effect.Effect<A, E, R>) => Effect.provide(effect, sessions(places))

const json = (thread: Thread) => ({
  threadId: thread.threadId,
  title: Threads.titleOf(thread),
  folder: Threads.folderOf(thread),
  agent: Threads.agentOf(thread),
  entries: thread.leaf.step,
  createdAt: thread.createdAt,
  updatedAt: thread.updatedAt,
  archived: thread.archived,
  ...(thread.origin === undefined ? {} : { origin: thread.origin.threadId })
})

export const list = (
  places: Places,
  options: { readonly all: boolean; readonly archived: boolean; readonly json: boolean; readonly limit: number }
) =>
  withStore(
    places,
    Effect.gen(function* () {
      const store = yield* SessionStore
      const { archived, limit } = options
      const where = options.all ? {} : { where: { folder: places.project } }
      const { items } = yield* orFail("failed")(store.list({ ...where, archived, limit }))
      if (options.json) return yield* printJson(items.map(json))
      if (items.length === 0) {
        return yield* print(
          options.all ? "There are no sessions yet." : "This folder has no sessions yet (--all lists other folders)."
        )
      }
      const now = yield* Clock.currentTimeMillis
      const rows = items.map((thread) => [
        thread.threadId,
        ago(now - thread.updatedAt),
        `${thread.leaf.step}`,
        ...(options.all ? [Threads.folderOf(thread)] : []),
        oneLine(Threads.titleOf(thread)).slice(0, 80)
      ])
      const head = ["session", "changed", "entries", ...(options.all ? ["folder"] : []), "began with"]
      return yield* print(...table([head, ...rows]))
    })
  )

const calls = ({ toolCalls }: AiMessage): ReadonlyArray<string> =>
  toolCalls.map((call) => `→ ${call.name} ${oneLine(ToolCall.describeArguments(call.arguments)).slice(0, 200)}`)

/** A message as lines for people. */
export const lines = (message: Message): ReadonlyArray<string> => {
  const text = visible(Messages.text(message)).trim()
  switch (message.role) {
    case "human":
      return ["", `> ${text.replaceAll("\n", "\n> ")}`, ""]
    case "ai":
      return [...(text === "" ? [] : [text]), ...calls(message)]
    case "tool":
      return [`  ${message.isError ? "✗" : "✓"} ${oneLine(text).slice(0, 200)}`]
    case "system":
      return []
  }
}

export const show = (places: Places, id: string, asJson: boolean) =>
  withStore(
    places,
    Effect.gen(function* () {
      const store = yield* SessionStore
      const thread = yield* Threads.find(store, id)
      const { checkpoint } = yield* orFail("failed")(loadThread(store, thread.threadId))
      const messages = checkpoint?.messages ?? []
      if (asJson) return yield* printJson({ ...json(thread), messages, usage: checkpoint?.usage })
      return yield* print(...table([[thread.threadId, Threads.titleOf(thread)]]), ...messages.flatMap(lines))
    })
  )

export const fork = (places: Places, id: string) =>
  withStore(
    places,
    Effect.gen(function* () {
      const store = yield* SessionStore
      const thread = yield* Threads.find(store, id)
      const copy = yield* orFail("failed")(store.fork(thread.threadId, { threadId: yield* Threads.newId }))
      return yield* print(copy.threadId)
    })
  )

export const archive = (places: Places, id: string, undo: boolean) =>
  withStore(
    places,
    Effect.gen(function* () {
      const store = yield* SessionStore
      // Archived threads are in no list, so restoring one needs the full id.
      const threadId = undo ? id : (yield* Threads.find(store, id)).threadId
      // A turn at work could not store its end.
      if (!undo) yield* hold(places, threadId)
      return yield* orFail("failed")(undo ? store.unarchive(threadId) : store.archive(threadId))
    }).pipe(Effect.scoped)
  )

/** Exports a thread as Markdown, or as lines of JSON for `SessionStore.import`. */
export const exported = (places: Places, id: string, format: "markdown" | "jsonl") =>
  withStore(
    places,
    Effect.gen(function* () {
      const store = yield* SessionStore
      const thread = yield* Threads.find(store, id)
      if (format === "jsonl") {
        return yield* orFail("failed")(writeAll(Stream.map(store.export(thread.threadId), (line) => `${line}\n`)))
      }
      const { checkpoint } = yield* orFail("failed")(loadThread(store, thread.threadId))
      const text = (checkpoint?.messages ?? []).flatMap((message) => {
        const content = visible(Messages.text(message)).trim()
        if (message.role === "human") return [`## ${oneLine(content).slice(0, 80)}`, "", content, ""]
        if (message.role === "ai")
          return [...(content === "" ? [] : [content, ""]), ...calls(message).flatMap((call) => [`- ${call}`, ""])]
        return []
      })
      return yield* print(`# ${Threads.titleOf(thread)}`, "", ...text)
    })
  )

export const search = (places: Places, words: ReadonlyArray<string>, asJson: boolean) =>
  withStore(
    places,
    Effect.gen(function* () {
      const store = yield* SessionStore
      const text = words.join(" ").trim()
      if (text === "") return yield* fail("usage", "Say what to look for: deepagents sessions search <words>")
      const { items } = yield* orFail("failed")(store.search(text, { limit: 50 }))
      if (asJson) return yield* printJson(items)
      if (items.length === 0) return yield* print("Nothing was found.")
      const now = yield* Clock.currentTimeMillis
      return yield* print(
        ...table(
          items.map(({ at, excerpt, role, threadId }) => [
            threadId,
            ago(now - at),
            role,
            oneLine(excerpt).slice(0, 120)
          ])
        )
      )
    })
  )

/** Opens a store until the scope ends. */
const openStore = ({ layer }: Address) =>
  Effect.map(Layer.build(Layer.fresh(layer)), (services) => Context.get(services, SessionStore))

export const copy = (source: string, target: string, asJson: boolean) =>
  Effect.gen(function* () {
    const from = yield* addressOf(source, "source")
    const to = yield* addressOf(target, "target")
    const stores = [yield* openStore(from), yield* openStore(to)] as const
    const result = yield* orFail("failed")(Sessions.copy(...stores, { name: to.name }))
    if (asJson) return yield* printJson({ ...result, from: from.name, to: to.name })
    const { bytes, copied, entries, threads } = result
    return yield* print(
      `${threads} sessions are in ${to.name}, ${copied} of them copied now: ${entries} entries, ${bytes} bytes, each verified.`,
      `${from.name} takes no more changes, and can still be read.`
    )
  }).pipe(Effect.scoped)

export const reopen = (source: string) =>
  Effect.gen(function* () {
    const from = yield* addressOf(source, "source")
    const place = yield* orFail("failed")(Sessions.reopen(yield* openStore(from)))
    return yield* print(
      place === undefined
        ? `${from.name} was not moved, and takes changes.`
        : `${from.name} takes changes again. Don't use its copy in ${oneLine(place)} any more: a session that continues in both does its work twice.`
    )
  }).pipe(Effect.scoped)
