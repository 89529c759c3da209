/**
 * Keeps what is too large for the conversation in files: results of tools, and messages of the user.
 *
 * A result over 20,000 tokens is written to the backend, and the model gets its path with the first and last lines; it
 * reads the rest by its file tools. So is a user message over 50,000 tokens: the transcript keeps it, the model sees a
 * pointer. If the file can't be written, nothing is replaced. A model that is offered neither `read_file` nor `grep`
 * gets the beginning and the end instead. A direct answer of a tool stays as it is, since it is for the user.
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
import * as ToolOutput from "../core/ToolOutput.ts"
import * as Attached from "../support/attached.ts"
import { sha256 } from "../support/hash.ts"
import { cut } from "../support/text.ts"
import { amountProblem, countProblem } from "./internal/limits.ts"

/**
 * The name of this middleware: one of yours with it takes its place in a deep agent.
 *
 * @category constants
 * @since 0.1.0
 */
export const name = "Filesystem"

/** Characters that are counted as one token. */
const charactersPerToken = 4

/** The preview of a text that was put away: so many lines of each end, of so many characters at most. */
const preview = { lines: 5, characters: 1_000 } as const

/**
 * `toolResults` and `userMessages` are limits in tokens (20,000 and 50,000), estimated at four characters each; of a
 * message, all of its text counts. A result is put away at 25,000 tokens at the latest, since no more is shown of one
 * (`ToolOutput.defaultLimit`); `Infinity` puts none away. `folder` is where files are put. `keep` (200) is how many of
 * them stay there: the oldest go first. Other files of the folder are left alone.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  readonly toolResults?: number | undefined
  readonly userMessages?: number | undefined
  readonly folder?: string | undefined
  readonly keep?: number | undefined
}

const cutLine = (line: string): string => cut(line, preview.characters, " […]")

const ends = (text: string): string => {
  const lines = text.split("\n")
  const head = lines.slice(0, preview.lines).map(cutLine)
  const tail = lines.slice(Math.max(preview.lines, lines.length - preview.lines)).map(cutLine)
  const between = lines.length - head.length - tail.length
  return [...head, ...(between > 0 ? [`[… ${between} lines …]`] : []), ...tail].join("\n")
}

/** Tells the model how to read a file, by the tools that it is offered; `undefined` if it can't read any. */
const readingBy = (offered: ReadonlyArray<ToolDefinition>): string | undefined => {
  const has = (name: string) => offered.some((tool) => tool.name === name)
  const ways = [
    ...(has("grep") ? ["search it with grep"] : []),
    ...(has("read_file") ? ["read it in parts with read_file"] : [])
  ]
  return ways.length === 0 ? undefined : ways.join(", or ")
}

const pointer = (what: string, path: string, reading: string, text: string): string =>
  `${what} has ${text.length} characters, too many to show. All of it is in the file ${path}: ${reading}. Its first and last lines:\n\n${ends(text)}`

const notText = (content: ReadonlyArray<Content.Block>): ReadonlyArray<Content.Block> =>
  content.filter((block) => block.type !== "text")

/** Measures the text of blocks without joining them. */
const lengthOf = (content: ReadonlyArray<Content.Block>): number =>
  content.reduce((sum, block) => (block.type === "text" ? sum + block.text.length : sum), 0)

/** Names by content: the same text is the same file, whatever it is called by, and no name is longer than another. */
const nameOf = (bytes: Uint8Array<ArrayBuffer>): Effect.Effect<string> =>
  Effect.map(sha256(bytes), (hash) => `${hash.slice(0, 32)}.txt`)

/** Names of files that this middleware wrote. */
const ownName = /\/[0-9a-f]{32}\.txt$/

/** Deletes a file that was put away: one that still is what its name says. What somebody made or changed is theirs. */
const drop = Effect.fnUntraced(function* (backend: Service, path: string) {
  const [file] = yield* backend.download([path])
  if (file?.ok !== true) return
  const name = yield* nameOf(Uint8Array.from(file.value))
  if (path.endsWith(`/${name}`)) yield* backend.delete(path)
})

/** Drops the oldest files over the limit, never the one just written. What can't be dropped stays: it does no harm. */
const prune = Effect.fnUntraced(function* (backend: Service, folder: string, keep: number, latest: string) {
  const { entries } = yield* backend.ls(folder)
  const own = entries.filter((entry) => entry.kind === "file" && ownName.test(entry.path))
  const oldest = own
    .filter((entry) => entry.path !== latest)
    .toSorted((left, right) => (left.modifiedAt ?? 0) - (right.modifiedAt ?? 0) || (left.path < right.path ? -1 : 1))
    .slice(0, Math.max(0, own.length - keep))
  yield* Effect.forEach(oldest, (entry) => Effect.ignore(drop(backend, entry.path)), { discard: true })
})

/** The limits in characters, and the place of what is longer. */
interface Limits {
  readonly results: number
  readonly messages: number
  readonly folder: string
  readonly keep: number
}

/** Puts a text away and gives its path; `undefined` if that failed. */
const put = Effect.fnUntraced(function* (run: Run, text: string, { folder, keep }: Limits) {
  const backend = yield* Backend
  const path = `${folder}/${yield* nameOf(new TextEncoder().encode(text))}`
  const failure = yield* Effect.match(backend.write(path, text), {
    onSuccess: () => undefined,
    onFailure: (error) => error
  })
  if (failure !== undefined) {
    yield* run.warn(
      "not-put-away",
      `A large text stays in the conversation, since it can't be written: ${failure.message}`
    )
    return undefined
  }
  yield* Effect.ignore(prune(backend, folder, keep, path))
  return path
})

/** The text that is shown of one that is too long; `undefined` if it could not be put away. */
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
  const path = yield* put(run, text, limits)
  return path === undefined ? undefined : pointer(what, path, reading, text)
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
  const shown = yield* shownText(run, limits, what, Message.text(message), limits.messages, offered)
  return shown === undefined ? message : { ...message, content: [Content.text(shown), ...notText(message.content)] }
})

/** A list of messages, how far it was looked at, and what is shown of it once something large was found. */
interface View {
  readonly of: ReadonlyArray<Message.Message>
  looked: number
  shown: Array<Message.Message> | undefined
}

/** The messages that runs were shown so far: their list only grows at its end, so a round looks at the new ones. */
type Views = Attached.Attached<Run, View>

const viewIn = (views: Views, run: Run, of: ReadonlyArray<Message.Message>): View => {
  const known = views.get(run)
  if (known?.of === of) return known
  const made: View = { of, looked: 0, shown: undefined }
  views.set(run, made)
  return made
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
  const shown = view.shown ?? view.of.slice(0, view.looked)
  view.shown = shown
  for (const message of view.of.slice(shown.length)) shown.push(yield* putAway(run, limits, message, offered))
  return shown
})

/**
 * Puts large results and messages away. It needs the backend that the agent's file tools work on.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options: Options = {}): Middleware.Middleware<never, Backend> => {
  const { folder = "/large_results", keep = 200, toolResults = 20_000, userMessages = 50_000 } = options
  const limits: Limits = {
    results: toolResults === Infinity ? Infinity : Math.min(toolResults * charactersPerToken, ToolOutput.defaultLimit),
    messages: userMessages * charactersPerToken,
    folder,
    keep
  }
  const views: Views = Attached.make<Run, View>()
  return Middleware.make<never, Backend>({
    name,
    inherit: true,
    check: () => amountProblem(name, { toolResults, userMessages }) ?? countProblem(name, { keep }),
    wrapModelCall: (request, next, run) => {
      if (request.purpose !== turnPurpose) return next(request)
      const view = viewIn(views, run, request.messages)
      if (hasNone(view, limits)) return next(request)
      const shown = shownOf(run, limits, view, request.tools)
      return Stream.unwrap(Effect.map(shown, (messages) => next({ ...request, messages })))
    },
    wrapToolCall: (call, next, run) => {
      // An output that goes to a tool stays whole.
      if (call.parent !== undefined) return next(call)
      return Effect.flatMap(next(call), (output) => {
        const isForUser = output.returnDirect && !output.isError
        if (isForUser || call.annotations.paged === true || lengthOf(output.content) <= limits.results) {
          return Effect.succeed(output)
        }
        const what = `The result of ${call.name}`
        const text = ToolOutput.text(output)
        return Effect.map(shownText(run, limits, what, text, limits.results, run.offered), (shown) =>
          shown === undefined ? output : { ...output, content: [Content.text(shown), ...notText(output.content)] }
        )
      })
    }
  })
}
