/**
 * Keeps what is too large for the conversation in files: results of tools, and messages of the user.
 *
 * A result over 20,000 tokens is written to the backend, and the model gets its path with the first and last lines; it
 * reads the rest by its file tools. So is a user message over 50,000 tokens: the transcript keeps it, the model sees a
 * pointer. If the file can't be written, nothing is replaced.
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
import { turnPurpose } from "../core/ChatModel.ts"
import * as Content from "../core/Content.ts"
import * as Message from "../core/Message.ts"
import * as Middleware from "../core/Middleware.ts"
import type { Run } from "../core/Run.ts"
import * as ToolOutput from "../core/ToolOutput.ts"

/** What a token is taken to be, in characters. */
const charactersPerToken = 4

/** What the model is shown of a text that was put away: so many lines of each end, of so many characters at most. */
const preview = { lines: 5, characters: 1_000 } as const

/**
 * `toolResults` and `userMessages` are limits in tokens (20,000 and 50,000), estimated at four characters each.
 * `folder` is where files are put. `keep` (200) is how many stay there: the oldest go first.
 */
export interface Options {
  readonly toolResults?: number
  readonly userMessages?: number
  readonly folder?: string
  readonly keep?: number
}

const cutLine = (line: string): string =>
  line.length <= preview.characters ? line : `${line.slice(0, preview.characters)} […]`

const ends = (text: string): string => {
  const lines = text.split("\n")
  const head = lines.slice(0, preview.lines).map(cutLine)
  const tail = lines.slice(Math.max(preview.lines, lines.length - preview.lines)).map(cutLine)
  const between = lines.length - head.length - tail.length
  return [...head, ...(between > 0 ? [`[… ${between} lines …]`] : []), ...tail].join("\n")
}

const pointer = (what: string, path: string, text: string): string =>
  `${what} has ${text.length} characters, too many to show. All of it is in the file ${path}: search it with grep, or read it in parts with read_file. Its first and last lines:\n\n${ends(text)}`

/** Names by content: the same text is the same file, whatever it is called by, and no name is longer than another. */
const nameOf = (text: string): Effect.Effect<string> =>
  Effect.map(
    Effect.promise(() => globalThis.crypto.subtle.digest("SHA-256", new TextEncoder().encode(text))),
    (digest) =>
      Array.from(new Uint8Array(digest).subarray(0, 16), (byte) => byte.toString(16).padStart(2, "0")).join("")
  )

/** Drops the oldest files over the limit, never the one just written. What can't be dropped stays: it does no harm. */
const prune = Effect.fnUntraced(function* (backend: Service, folder: string, keep: number, latest: string) {
  const { entries } = yield* backend.ls(folder)
  const oldest = entries
    .filter((entry) => entry.kind === "file" && entry.path !== latest)
    .toSorted((left, right) => (left.modifiedAt ?? 0) - (right.modifiedAt ?? 0) || (left.path < right.path ? -1 : 1))
    .slice(0, Math.max(0, entries.length - keep))
  yield* Effect.forEach(oldest, (entry) => Effect.ignore(backend.delete(entry.path)), { discard: true })
})

/** Puts a text away and gives its path; `undefined` if that failed. */
const put = Effect.fnUntraced(function* (run: Run, text: string, folder: string, keep: number) {
  const backend = yield* Backend
  const path = `${folder}/${yield* nameOf(text)}.txt`
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

/** A list of messages, how far it was looked at, and what is shown of it once something large was found. */
interface View {
  readonly of: ReadonlyArray<Message.Message>
  looked: number
  shown: Array<Message.Message> | undefined
}

/** Puts large results and messages away. It needs the backend that the agent's file tools work on. */
export const make = (options: Options = {}): Middleware.Middleware<never, Backend> => {
  const folder = options.folder ?? "/large_results"
  const keep = options.keep ?? 200
  const resultLimit = (options.toolResults ?? 20_000) * charactersPerToken
  const messageLimit = (options.userMessages ?? 50_000) * charactersPerToken
  const isLarge = (message: Message.Message): boolean =>
    message.role === "human" &&
    message.content.some((block) => block.type === "text" && block.text.length > messageLimit)

  // What a run was shown so far: its list only grows at its end, so a round looks at what is new in it.
  const views = new WeakMap<Run, View>()
  const viewOf = (run: Run, of: ReadonlyArray<Message.Message>): View => {
    const known = views.get(run)
    if (known?.of === of) return known
    const made: View = { of, looked: 0, shown: undefined }
    views.set(run, made)
    return made
  }
  const hasNone = (view: View): boolean => {
    if (view.shown !== undefined) return false
    while (view.looked < view.of.length) {
      const message = view.of[view.looked]
      if (message !== undefined && isLarge(message)) return false
      view.looked++
    }
    return true
  }

  const putAway = Effect.fnUntraced(function* (run: Run, message: Message.Message) {
    if (!isLarge(message)) return message
    const text = Message.text(message)
    const path = yield* put(run, text, folder, keep)
    if (path === undefined) return message
    return {
      ...message,
      content: [
        Content.text(pointer("This message of the user", path, text)),
        ...message.content.filter((block) => block.type !== "text")
      ]
    }
  })
  const shownOf = Effect.fnUntraced(function* (run: Run, view: View) {
    const shown = view.shown ?? view.of.slice(0, view.looked)
    view.shown = shown
    for (const message of view.of.slice(shown.length)) shown.push(yield* putAway(run, message))
    return shown
  })

  return Middleware.make<never, Backend>({
    name: "Filesystem",
    inherit: true,
    wrapModelCall: (request, next, run) => {
      if (request.purpose !== turnPurpose) return next(request)
      const view = viewOf(run, request.messages)
      return hasNone(view)
        ? next(request)
        : Stream.unwrap(Effect.map(shownOf(run, view), (messages) => next({ ...request, messages })))
    },
    wrapToolCall: (call, next, run) =>
      Effect.flatMap(next(call), (output) => {
        const text = ToolOutput.text(output)
        if (text.length <= resultLimit || call.annotations.paged === true) return Effect.succeed(output)
        return Effect.map(put(run, text, folder, keep), (path) =>
          path === undefined
            ? output
            : {
                ...output,
                content: [
                  Content.text(pointer(`The result of ${call.name}`, path, text)),
                  ...output.content.filter((block) => block.type !== "text")
                ]
              }
        )
      })
  })
}
