/** Replaces the old part of a conversation by a summary, and preserves important messages beside it. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { IdGenerator } from "../../../core/IdGenerator.ts"
import type { Json } from "../../../core/Json.ts"
import * as Message from "../../../core/Message.ts"
import type { ToolCall } from "../../../core/ToolCall.ts"
import { defined } from "../../../support/json/defined.ts"
import type { Offload, Pin, Record, Ref } from "./record.ts"
import { firstOf, offloaded, refAt, type Outside, type Situation } from "./situation.ts"
import { summarise } from "./summarise.ts"
import { shorten } from "./trim.ts"
import { locate, viewOf } from "./view.ts"

const changes = /write|edit|patch|create|delete|remove|move|rename|append|insert|replace/i
const keys = ["file_path", "path", "from", "to"]
const patched = /^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+)$/gm

/** More files than this help no model, and a hostile one could fill the summary with names. */
const mostFiles = 100
const longestName = 300

const isName = (value: Json | undefined): value is string =>
  typeof value === "string" && value !== "" && value.length <= longestName && !/\p{Cc}/u.test(value)

const namedIn = ({ arguments: args, name }: ToolCall): ReadonlyArray<string> => {
  if (!changes.test(name)) return []
  const named = keys.map((key) => args[key])
  const patch = args["patch"]
  const inPatch = typeof patch === "string" ? Array.from(patch.matchAll(patched), (match) => match[1]?.trim()) : []
  return [...named, ...inPatch].filter(isName)
}

/** The files that these messages changed, added to the known ones; the latest come last. Failed calls don't count. */
const filesIn = (
  messages: ReadonlyArray<Message.Message>,
  earlierFiles: ReadonlyArray<string>
): ReadonlyArray<string> => {
  const failed = new Set(
    messages.flatMap((message) => (message.role === "tool" && message.isError ? [message.toolCallId] : []))
  )
  const files = new Set(earlierFiles)
  for (const message of messages) {
    if (message.role !== "ai") continue
    for (const call of message.toolCalls) {
      if (failed.has(call.id)) continue
      for (const name of namedIn(call)) {
        files.delete(name)
        files.add(name)
      }
    }
  }
  return [...files].slice(-mostFiles)
}

/** Characters of the text of `keep`. */
const mostKept = 10_000

const isOwn = (message: Message.Message): boolean => message.role === "human" && message.source === undefined

/** Selects the messages beside the summary: the user's first and last ones. */
export const pinsOf = ({ frame, history, limits, meter, ratio }: Situation, through: number): ReadonlyArray<Pin> => {
  const room = Math.max(0, limits.trigger / ratio - frame)
  const pin = (index: number, share: number): ReadonlyArray<Pin> => {
    const message = history[index]
    if (message === undefined || index > through) return []
    const tokens = meter.message(message)
    const most = Math.max(100, room * share)
    if (tokens <= most) return [refAt(history, index)]
    return [
      { ...refAt(history, index), limit: Math.max(200, Math.floor((Message.text(message).length * most) / tokens)) }
    ]
  }
  const newest = history.findLastIndex(isOwn)
  const own = history.findIndex(isOwn)
  const goal = own === -1 ? history.findIndex((message) => message.role === "human") : own
  return newest === goal ? pin(goal, 0.25) : [...pin(goal, 0.1), ...pin(newest, 0.25)]
}

const list = (names: ReadonlyArray<string>): string => names.map((name) => `- ${name}`).join("\n")

/** The most files that are listed by name. */
const mostNamed = 12

const whereabouts = ({ files, folder }: Offload): string => {
  const more = Math.max(0, files.length - mostNamed)
  const names = files.slice(more).join(", ")
  const before = more === 0 ? "" : `, and ${more} older ones`
  return `The conversation up to here is kept word for word in the folder ${folder}, in these files, the oldest first: ${names}${before}. Read or search them for what the summary leaves out.`
}

const head = `[What follows is a summary of the conversation so far. It takes the place of everything in it but what the user said first and last, which stands above if it is older than what comes below. It is no request: go on from where the work stands, and do not begin again.]

`

const restOf = (files: ReadonlyArray<string>, notes: string, offloaded: Offload | undefined): string =>
  [
    ...(files.length === 0 ? [] : [`## Files changed\n${list(files)}`]),
    ...(notes === "" ? [] : [notes]),
    ...(offloaded === undefined || offloaded.files.length === 0 ? [] : [whereabouts(offloaded)])
  ]
    .map((section) => `\n\n${section}`)
    .join("")

/** Limits a summary to a tenth of the room for messages, within bounds. */
const summaryTokens = ({ frame, limits, ratio }: Situation): number =>
  Math.min(3_000, Math.max(100, 0.1 * (limits.trigger / ratio - frame)))

/** Selects the messages to fold: not yet folded, and no leading instructions. */
const rangeOf = (at: Situation, end: number): ReadonlyArray<Message.Message> => at.history.slice(firstOf(at), end)

const earlierOf = ({ record, view }: Situation): string | undefined =>
  view.foldedTo < 0 ? undefined : record.fold?.body

/** Requests a summary of everything before `end`, without a decision. */
export const summaryBody = Effect.fnUntraced(function* <E, R>(outside: Outside<E, R>, at: Situation, end: number) {
  const { history, limits, meter, ratio, run } = at
  const author = yield* outside.author(run)
  const goal = history.findIndex(isOwn)
  return yield* summarise(run, author, meter, {
    earlier: earlierOf(at),
    goal: goal < firstOf(at) ? history[goal] : undefined,
    messages: rangeOf(at, end),
    window: author.window ?? limits.window,
    ratio: author.session === undefined ? ratio : 1,
    tokens: summaryTokens(at)
  })
})

/** Folds everything before `end` under a text, if that shortens the view. */
const foldUnder = Effect.fnUntraced(function* <E, R>(outside: Outside<E, R>, at: Situation, end: number, body: string) {
  const { history, meter, record, run, view } = at
  const notes = outside.keep === undefined ? "" : shorten((yield* outside.keep(run)).trim(), mostKept)
  const files = filesIn(rangeOf(at, end), earlierOf(at) === undefined ? [] : record.files)
  const makeId = yield* IdGenerator
  const { clip, trim: trimmed, ...others } = record
  const keepLater = <A extends { readonly through: Ref }>(one: A | undefined): A | undefined =>
    one !== undefined && locate(history, one.through) >= end ? one : undefined
  const base: Record = defined({ ...others, files, trim: keepLater(trimmed), clip: keepLater(clip) })
  const fold = { through: refAt(history, end - 1), pins: pinsOf(at, end - 1), id: makeId(), head, body }
  const folded = (archive: Offload | undefined): Record => ({
    ...base,
    fold: { ...fold, rest: restOf(files, notes, archive) }
  })
  const isShorter = (one: Record): boolean => viewOf(history, one, meter).tokens < view.tokens
  const plain = folded(undefined)
  if (!isShorter(plain)) return undefined
  const offload = yield* offloaded(outside, at, end)
  if (offload === undefined) return plain
  const pointing = folded(offload)
  return { ...(isShorter(pointing) ? pointing : plain), offload }
})

const messageOf = (error: unknown): string =>
  error instanceof Error && error.message !== "" ? error.message : String(error)

/** Folds by a summary. Without a summary that is shorter than its source, nothing is folded. */
export const summarised = Effect.fnUntraced(function* <E, R>(
  outside: Outside<E, R>,
  at: Situation,
  end: number,
  body: Result.Result<string, unknown>
) {
  if (Result.isFailure(body)) {
    yield* at.run.warn("summarization-failed", `No summary was made: ${messageOf(body.failure)}`)
    return undefined
  }
  const folded = yield* foldUnder(outside, at, end, body.success)
  if (folded === undefined) {
    yield* at.run.warn("summarization-failed", "The summary was longer than what it tells of, and was discarded.")
  }
  return folded
})

/** Drops the oldest messages, with a notice in their place. Earlier summaries stay. */
export const dropped = Effect.fnUntraced(function* <E, R>(outside: Outside<E, R>, at: Situation, end: number) {
  const count = rangeOf(at, end).length
  const notice = `[${count} messages could not be summarised and were left out here.]`
  const earlier = earlierOf(at)
  const folded = yield* foldUnder(outside, at, end, earlier === undefined ? notice : `${earlier}\n\n${notice}`)
  if (folded !== undefined) {
    yield* at.run.warn("summarization-dropped", `${count} old messages are left out without a summary.`)
  }
  return folded
})
