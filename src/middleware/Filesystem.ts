/**
 * Moves large tool results and large user messages from the conversation to files.
 *
 * A result over 20,000 tokens is written to the backend. The model gets its path with the first and last lines, and
 * reads the rest by its file tools. A result over 2,000,000 characters becomes several files. A user message over
 * 50,000 tokens is written too: the transcript keeps it, the model sees a pointer. If the write fails, nothing is
 * replaced. A model without `read_file` and `grep` gets the beginning and the end instead. A tool's direct answer stays
 * whole, since it is for the user.
 *
 * ```ts
 * import { Agent } from "effect-deepagents"
 * import { FileTools } from "effect-deepagents/backends"
 * import { Filesystem } from "effect-deepagents/middleware"
 *
 * const agent = Agent.make({
 *   name: "reader",
 *   prompt: "You work on files.",
 *   tools: FileTools.make(),
 *   middleware: [Filesystem.make()]
 * })
 * ```
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { Backend, type Service } from "../core/Backend.ts"
import { type ToolDefinition, turnPurpose } from "../core/ChatModel.ts"
import * as Content from "../core/Content.ts"
import * as Message from "../core/Message.ts"
import * as Middleware from "../core/Middleware.ts"
import type { Run } from "../core/Run.ts"
import { makeMiddlewareCheck } from "../core/schema/invalid.ts"
import * as ToolOutput from "../core/ToolOutput.ts"
import * as Attached from "../support/effect/attached.ts"
import { sha256 } from "../support/store/hash.ts"
import { boundaryBefore, cut } from "../support/text/text.ts"
import { amountProblem, countProblem } from "./internal/limits.ts"
import * as shapes from "./internal/shapes.ts"

const name = "Filesystem"

/** Characters of a token, by estimate. */
const charactersPerToken = 4

/** The preview of a stored text: lines of each end, and their characters at most. */
const preview = { lines: 5, characters: 1_000 } as const

/**
 * Limits of results and messages in a conversation. All text of a message counts. Other files in the folder are
 * untouched.
 */
export interface Options {
  /**
   * The tokens (four characters each) from which a result goes into a file, 25,000 at the latest; `Infinity` turns it
   * off. Default: 20,000.
   */
  readonly toolResults?: number | undefined
  /** The tokens (four characters each) from which a user's message goes into a file. Default: 50,000. */
  readonly userMessages?: number | undefined
  /** The folder of the files in the backend. Default: `large_results` in its `paths.scratch`, or in its root. */
  readonly folder?: string | undefined
  /** The most stored files. The oldest are deleted first, but none of a run's last two rounds. Default: 200. */
  readonly keep?: number | undefined
}

const cutLine = (line: string): string => cut(line, preview.characters, " […]")

/** The characters of one file: at most 6 MB, which every backend accepts. Work on a text proceeds in such parts. */
const partLength = 2_000_000

/** The first lines of a text, and its last lines without overlap. */
const ends = (text: string, count: number): string => {
  const head: Array<string> = []
  for (let at = 0; head.length < Math.min(count, preview.lines);) {
    const end = text.indexOf("\n", at)
    head.push(cutLine(text.slice(at, end === -1 ? text.length : end)))
    at = end + 1
  }
  const tail: Array<string> = []
  for (let end = text.length; tail.length < Math.min(preview.lines, count - head.length);) {
    const start = end === 0 ? -1 : text.lastIndexOf("\n", end - 1)
    tail.unshift(cutLine(text.slice(start + 1, end)))
    end = start
  }
  const between = count - head.length - tail.length
  return [...head, ...(between > 0 ? [`[… ${between} lines …]`] : []), ...tail].join("\n")
}

/** Splits a text, at line ends if possible, and yields to other fibers between two parts. */
const partsOf = Effect.fnUntraced(function* (text: string) {
  const parts: Array<string> = []
  let lines = 1
  for (let at = 0; at < text.length;) {
    const most = at + partLength
    const newline = most < text.length ? text.lastIndexOf("\n", most - 1) : -1
    const end = newline >= most - 100_000 ? newline + 1 : most < text.length ? boundaryBefore(text, most) : text.length
    const part = text.slice(at, end)
    for (let lineEnd = part.indexOf("\n"); lineEnd !== -1; lineEnd = part.indexOf("\n", lineEnd + 1)) lines++
    parts.push(part)
    at = end
    yield* Effect.yieldNow
  }
  return { parts, lines }
})

/** Explains how to read a file by the offered tools; `undefined` if no tool can. */
const readingBy = (offered: ReadonlyArray<ToolDefinition>): string | undefined => {
  const has = (name: string) => offered.some((tool) => tool.name === name)
  const ways = [
    ...(has("grep") ? ["search it with grep"] : []),
    ...(has("read_file") ? ["read it in parts with read_file"] : [])
  ]
  return ways.length === 0 ? undefined : ways.join(", or ")
}

/** The most files that a pointer lists by name. */
const maxNamed = 100

/** A stored text: its files in order, and its number of lines. */
interface StoredText {
  readonly paths: ReadonlyArray<string>
  readonly lines: number
}

const pointer = (what: string, { lines, paths }: StoredText, reading: string, text: string): string => {
  const [first = ""] = paths
  const named = paths.slice(0, maxNamed).join(" ")
  const more = paths.length > maxNamed ? ` … ${paths.at(-1)}` : ""
  const place =
    paths.length === 1
      ? `All of it is in the file ${first}: ${reading}.`
      : `All of it is in ${paths.length} files, one after the other: ${reading}. The files: ${named}${more}`
  return `${what} has ${text.length} characters, too many to show. ${place} Its first and last lines:\n\n${ends(text, lines)}`
}

const notText = (content: ReadonlyArray<Content.Block>): ReadonlyArray<Content.Block> =>
  content.filter((block) => block.type !== "text")

/** Measures the text of blocks without joining them. */
const lengthOf = (content: ReadonlyArray<Content.Block>): number =>
  content.reduce((sum, block) => (block.type === "text" ? sum + block.text.length : sum), 0)

/** Names a file by its content, so equal texts share a file. */
const hashOf = (bytes: Uint8Array<ArrayBuffer>, length: number): Effect.Effect<string> =>
  Effect.map(sha256(bytes), (hash) => hash.slice(0, length))

/** Names of files of this middleware: a whole text, or a numbered part. */
const ownName = /\/(?:([0-9a-f]{32})|([0-9a-f]{16})-\d{3,}-([0-9a-f]{16}))\.txt$/

/** Deletes a stored file if its content still matches its name. Files that somebody made or changed stay. */
const drop = Effect.fnUntraced(function* (backend: Service, path: string) {
  const [file] = yield* backend.download([path])
  const [, whole, , part] = ownName.exec(path) ?? []
  const name = whole ?? part
  if (file?.ok !== true || name === undefined) return
  if (name === (yield* hashOf(Uint8Array.from(file.value), name.length))) yield* backend.delete(path)
})

/** Deletes the oldest texts over the limit, except texts in use. A failed deletion is harmless. */
const prune = Effect.fnUntraced(function* (backend: Service, folder: string, keep: number, isNeeded: IsNeeded) {
  const { entries } = yield* backend.ls(folder)
  const texts = new Map<string, { readonly paths: Array<string>; at: number }>()
  for (const entry of entries) {
    const [, whole, id] = entry.kind === "file" ? (ownName.exec(entry.path) ?? []) : []
    const key = whole ?? id
    if (key === undefined) continue
    const text = texts.get(key) ?? { paths: [], at: 0 }
    text.paths.push(entry.path)
    text.at = Math.max(text.at, entry.modifiedAt ?? 0)
    texts.set(key, text)
  }
  const oldest = [...texts]
    .filter(([, { paths }]) => !paths.some(isNeeded))
    .toSorted(([left, { at: before }], [right, { at: after }]) => before - after || (left < right ? -1 : 1))
    .slice(0, Math.max(0, texts.size - keep))
  const paths = oldest.flatMap(([, text]) => text.paths)
  yield* Effect.forEach(paths, (path) => Effect.ignore(drop(backend, path)), { discard: true })
})

type IsNeeded = (path: string) => boolean

/** The files that a run stored in this round and the one before: the model reads them now. */
interface Recent {
  now: Set<string>
  before: Set<string>
}

type Recents = Attached.Attachments<Run, Recent>

const recentIn = (recents: Recents, run: Run): Recent => {
  const existing = recents.get(run)
  if (existing !== undefined) return existing
  const recent: Recent = { now: new Set(), before: new Set() }
  recents.set(run, recent)
  return recent
}

/** The limits in characters, and the folder of stored texts. */
interface Limits {
  readonly results: number
  readonly messages: number
  readonly folder: string | undefined
  readonly keep: number
  readonly recents: Recents
}

/** Stores a text and returns its files; `undefined` if that failed. */
const storeText = Effect.fnUntraced(function* (run: Run, text: string, { folder: baseFolder, keep, recents }: Limits) {
  const backend = yield* Backend
  const folder = baseFolder ?? `${backend.paths?.scratch ?? ""}/large_results`
  const { lines, parts } = yield* partsOf(text)
  const encoder = new TextEncoder()
  const hashes = yield* Effect.forEach(parts, (part) => hashOf(encoder.encode(part), parts.length === 1 ? 32 : 16))
  const id = yield* hashOf(encoder.encode(hashes.join(" ")), 16)
  const paths = hashes.map((hash, index) =>
    parts.length === 1 ? `${folder}/${hash}.txt` : `${folder}/${id}-${String(index + 1).padStart(3, "0")}-${hash}.txt`
  )
  const recent = recentIn(recents, run)
  // Other calls of the round drop old files at the same time.
  for (const path of paths) recent.now.add(path)
  const failure = yield* Effect.forEach(
    parts,
    (part, index) => Effect.andThen(backend.write(paths[index] ?? "", part), Effect.yieldNow),
    { discard: true }
  ).pipe(Effect.match({ onSuccess: () => undefined, onFailure: (error) => error }))
  if (failure !== undefined) {
    yield* run.warn(
      "not-put-away",
      `A large text stays in the conversation, since it can't be written: ${failure.message}`
    )
    return undefined
  }
  yield* Effect.ignore(prune(backend, folder, keep, (path) => recent.now.has(path) || recent.before.has(path)))
  return { paths, lines }
})

/** The replacement of a text that is too long; `undefined` if it could not be stored. */
const shownText = Effect.fnUntraced(function* (
  run: Run,
  limits: Limits,
  what: string,
  text: string,
  limit: number,
  offered: ReadonlyArray<ToolDefinition>
) {
  const reading = readingBy(offered)
  if (reading === undefined) return ToolOutput.truncateText(text, limit)
  const away = yield* storeText(run, text, limits)
  return away === undefined ? undefined : pointer(what, away, reading, text)
})

const isLarge = (message: Message.Message, { messages }: Limits): boolean =>
  message.role === "human" && lengthOf(message.content) > messages

const putAway = Effect.fnUntraced(function* (
  run: Run,
  limits: Limits,
  message: Message.Message,
  offered: ReadonlyArray<ToolDefinition>
) {
  if (!isLarge(message, limits)) return message
  const what = "This message of the user"
  const excerpt = yield* shownText(run, limits, what, Message.text(message), limits.messages, offered)
  return excerpt === undefined ? message : { ...message, content: [Content.text(excerpt), ...notText(message.content)] }
})

/** A list of messages, the number of scanned messages, and the shown list once it differs. */
interface View {
  readonly of: ReadonlyArray<Message.Message>
  looked: number
  shown: Array<Message.Message> | undefined
}

/** The views of runs. Their lists only grow at the end, so a round scans the new messages. */
type Views = Attached.Attachments<Run, View>

const viewIn = (views: Views, run: Run, of: ReadonlyArray<Message.Message>): View => {
  const existing = views.get(run)
  if (existing?.of === of) return existing
  const view: View = { of, looked: 0, shown: undefined }
  views.set(run, view)
  return view
}

const hasNone = (view: View, limits: Limits): boolean => {
  if (view.shown !== undefined) return false
  while (view.looked < view.of.length) {
    const message = view.of[view.looked]
    if (message !== undefined && isLarge(message, limits)) return false
    view.looked++
  }
  return true
}

const shownOf = Effect.fnUntraced(function* (
  run: Run,
  limits: Limits,
  view: View,
  offered: ReadonlyArray<ToolDefinition>
) {
  const messages = view.shown ?? view.of.slice(0, view.looked)
  view.shown = messages
  for (const message of view.of.slice(messages.length)) messages.push(yield* putAway(run, limits, message, offered))
  return messages
})

const refuseMake = makeMiddlewareCheck(name, shapes.filesystemMake)

/** Moves large results and messages to files. It needs the backend of the agent's file tools. */
export const make = (options: Options = {}): Middleware.Middleware<never, Backend> => {
  const refused = refuseMake(options)
  if (refused !== undefined) return refused
  const { folder, keep = 200, toolResults = 20_000, userMessages = 50_000 } = options
  const limits: Limits = {
    results: toolResults === Infinity ? Infinity : Math.min(toolResults * charactersPerToken, ToolOutput.defaultLimit),
    messages: userMessages * charactersPerToken,
    folder,
    keep,
    recents: Attached.make<Run, Recent>()
  }
  const views: Views = Attached.make<Run, View>()
  return Middleware.make<never, Backend>({
    name,
    inherit: true,
    check: () => amountProblem(name, { toolResults, userMessages }) ?? countProblem(name, { keep }),
    wrapModelCall: (request, next, run) => {
      if (request.purpose !== turnPurpose) return next(request)
      const recent = limits.recents.get(run)
      // A retried call starts no round: nothing was stored since.
      if (recent !== undefined && recent.now.size > 0) {
        recent.before = recent.now
        recent.now = new Set()
      }
      const view = viewIn(views, run, request.messages)
      if (hasNone(view, limits)) return next(request)
      const shortening = shownOf(run, limits, view, request.tools)
      return Stream.unwrap(Effect.map(shortening, (messages) => next({ ...request, messages })))
    },
    wrapToolCall: (call, next, run) => {
      // A result for a tool, not a model, stays whole.
      if (call.parent !== undefined) return next(call)
      return Effect.flatMap(next(call), (output) => {
        const isForUser = output.returnDirect && !output.isError
        if (isForUser || call.annotations.paged === true || lengthOf(output.content) <= limits.results) {
          return Effect.succeed(output)
        }
        const what = `The result of ${call.name}`
        const text = ToolOutput.text(output)
        return Effect.map(shownText(run, limits, what, text, limits.results, run.offered), (excerpt) =>
          excerpt === undefined ? output : { ...output, content: [Content.text(excerpt), ...notText(output.content)] }
        )
      })
    }
  })
}
