/**
 * Looks back at finished threads, and proposes changes of memory files and skills, which a person approves as diffs.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent } from "effect-deepagents"
 * import { Dream } from "effect-deepagents/patterns"
 *
 * const dream = Dream.make({ paths: ["/memories/AGENTS.md", "/skills"] })
 *
 * const program = Effect.gen(function* () {
 *   const threads = yield* Dream.quietThreads({ quiet: "30 minutes" })
 *   return yield* Agent.run(dream, dream.input({ threads }), { threadId: "dream of today" })
 * })
 * ```
 *
 * Only untainted text counts: the words of people, in threads that `Taint` has not marked.
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Agent from "../core/Agent.ts"
import type { AgentError } from "../core/AgentError.ts"
import * as AgentState from "../core/AgentState.ts"
import { Backend } from "../core/Backend.ts"
import type { BackendError } from "../core/BackendError.ts"
import type { ChatModel } from "../core/ChatModel.ts"
import type { JsonObject } from "../core/Json.ts"
import * as Message from "../core/Message.ts"
import * as Middleware from "../core/Middleware.ts"
import type { ModelError } from "../core/ModelError.ts"
import * as Question from "../core/Question.ts"
import { makeMiddlewareCheck } from "../core/schema/invalid.ts"
import type { SessionError } from "../core/SessionError.ts"
import { SessionStore } from "../core/SessionStore.ts"
import { ToolContext } from "../core/ToolContext.ts"
import type { ToolError } from "../core/ToolError.ts"
import * as Proposal from "../deep/Proposal.ts"
import * as Taint from "../middleware/Taint.ts"
import { loadThread } from "../sessions/journal.ts"
import { makeEffectCheck } from "../support/options/check.ts"
import { isQuoteOf, markText } from "../support/text/marked.ts"
import { cut } from "../support/text/text.ts"
import { oneLine } from "../support/text/untrusted.ts"
import * as shapes from "./internal/shapes.ts"

const Input = Schema.Struct({ threads: Schema.Array(Schema.String) })
type Input = typeof Input.Type

/**
 * The result. `kept`: the changes are made. `refused`: a person did not want them. `nothing`: no change was proposed.
 * `ignored` are threads with text from outside.
 */
export const Result = Schema.Struct({
  status: Schema.Literals(["kept", "refused", "nothing"]),
  proposal: Proposal.Proposal,
  ignored: Schema.Array(Schema.String)
})
export type Result = typeof Result.Type

/** The changes that the author of a proposal wants: the whole text of each file. */
export const Draft = Schema.Struct({
  changes: Schema.Array(
    Schema.Struct({
      path: Schema.String,
      text: Schema.String.annotate({ description: "The whole new text of the file" }),
      why: Schema.String.annotate({ description: "The reason, in one sentence" }),
      quotes: Schema.Array(Schema.String).annotate({
        description: "The words of people that led to the change, copied exactly"
      })
    })
  )
})
export type Draft = typeof Draft.Type

/** The words of people in a thread; `undefined` for a thread that has text from outside. */
const Material = Schema.Array(Schema.Struct({ threadId: Schema.String, words: Schema.UndefinedOr(Schema.String) }))
const Files = Schema.Array(Schema.Struct({ path: Schema.String, text: Schema.NullOr(Schema.String) }))

const mostWords = 20_000
const mostFiles = 100
const longestFile = 32_768

/** Reads the words of people. A thread that can't be read may have been marked. */
const readWords = Effect.fnUntraced(function* (threadId: string) {
  const { checkpoint } = yield* loadThread(yield* SessionStore, threadId)
  const labels = AgentState.read(checkpoint?.state ?? {}, Taint.labels)
  if (labels._tag === "Failure" || labels.success.arrivals > 0 || labels.success.secrets.length > 0) {
    return { threadId, words: undefined }
  }
  const texts = (checkpoint?.messages ?? []).flatMap((message) =>
    message.role === "human" && message.source === undefined ? [Message.text(message)] : []
  )
  return { threadId, words: cut(texts.join("\n\n"), mostWords) }
})

/** The files at and below the paths. A path whose last part has a dot is a file, also if it is not there yet. */
const readFiles = Effect.fnUntraced(function* (paths: ReadonlyArray<string>) {
  const backend = yield* Backend
  const found = yield* Effect.forEach(paths, (path) =>
    isFile(path)
      ? Effect.succeed([path])
      : backend.glob({ path, pattern: "**/*.md", limit: mostFiles }).pipe(
          Effect.map(({ entries }) => entries.map((entry) => entry.path)),
          Effect.catchIf(
            ({ reason }) => reason._tag === "NotFound",
            () => Effect.succeed([])
          )
        )
  )
  return yield* Effect.forEach([...new Set(found.flat())].slice(0, mostFiles), (path) =>
    Effect.map(Proposal.readText(path), (text) => ({ path, text }))
  )
})

const isFile = (path: string): boolean => path.slice(path.lastIndexOf("/") + 1).includes(".")

/** True for a path that a proposal may change: Markdown at or below the given ones, written plainly. */
const isAllowed = (path: string, paths: ReadonlyArray<string>): boolean =>
  path.split("/").every((part, index) => (part === "" ? index === 0 : part !== "." && part !== "..")) &&
  !/[\\\p{C}]/u.test(path) &&
  paths.some((one) =>
    isFile(one) ? path === one : path.startsWith(`${one.replace(/\/$/, "")}/`) && path.endsWith(".md")
  )

type Words = ReadonlyArray<{ readonly threadId: string; readonly words: string }>

/** The changes that may be proposed: each of an allowed path, with words of people as evidence. */
const changesOf = (
  { changes }: Draft,
  paths: ReadonlyArray<string>,
  files: typeof Files.Type,
  material: Words
): ReadonlyArray<Proposal.Change> => {
  const byPath = new Map<string, Proposal.Change>()
  for (const { path, quotes, text, why } of changes) {
    const before = files.find((file) => file.path === path)?.text ?? null
    const evidence = quotes.flatMap((quote) => {
      const source = material.find(({ words }) => isQuoteOf(quote, words))
      return source === undefined ? [] : [{ threadId: source.threadId, quote }]
    })
    const isKnown = files.some((file) => file.path === path)
    const isNew = !isKnown && !isFile(paths.find((one) => path.startsWith(one)) ?? "")
    if (evidence.length === 0 || before === text || text.length > longestFile) continue
    if (isAllowed(path, paths) && (isKnown || isNew)) byPath.set(path, { path, before, after: text, why, evidence })
  }
  return [...byPath.values()]
}

const authorByModel = Agent.make({
  name: "dreamer",
  description: "Proposes changes of memory and skills",
  prompt:
    "You look back at what people said in finished conversations, and improve the memory files and skills of an agent: what people want done in which way, what they corrected, what is not true any more. Change little: join what belongs together, and remove what was corrected. Leave out what mattered once only, and secrets. Each change needs words of people that led to it, copied exactly. Propose nothing if nothing helps.",
  output: Draft
})

const refuseMake = makeMiddlewareCheck("Dream", shapes.dreamMake)

/**
 * Makes the program. It reads the words of people in the threads, asks an author for new texts of the files, and asks a
 * person about all changes at once, with their diffs and their evidence. Nothing is written before that, and nothing at
 * all if a file has changed meanwhile.
 *
 * Threads with text from outside (`Taint`) are ignored: the author never sees them. A change is left out if its path is
 * not one of `paths`, or if none of its quotes are words of people.
 */
export const make = <E = ModelError, R = ChatModel>(options: {
  /** The memory files, and the folders of skills, that may change. Of folders it is Markdown alone. */
  readonly paths: ReadonlyArray<string>
  /** The agent that proposes changes. Default: the chat model of the context. */
  readonly author?: Agent.Agent<Draft, E, R> | undefined
}): Agent.Program<
  Input,
  Result | undefined,
  E | AgentError | SessionError | BackendError | Proposal.ProposalError | ToolError,
  R | SessionStore | Backend
> => {
  const refused = refuseMake(options)
  const { paths } = options
  // Without an author of the caller, E and R belong to the default one.
  const author = options.author ?? (authorByModel as Agent.Agent<Draft, unknown, unknown> as Agent.Agent<Draft, E, R>)

  const run = Effect.fnUntraced(function* ({ threads }: Input) {
    const { ask } = yield* ToolContext
    const read = yield* Agent.step("threads", Effect.forEach([...new Set(threads)], readWords), Material)
    const ignored = read.flatMap(({ threadId, words }) => (words === undefined ? [threadId] : []))
    const material = read.flatMap(({ threadId, words = "" }) => (words.trim() === "" ? [] : [{ threadId, words }]))
    const nothing: Result = { status: "nothing", proposal: Proposal.make([]), ignored }
    if (material.length === 0) return nothing
    const files = yield* Agent.step("files", readFiles(paths), Files)
    const shown = [
      `Files that you may change or add to: ${paths.map(oneLine).join(", ")}`,
      ...files.map(
        ({ path, text }) =>
          `${oneLine(path)}${text === null ? " is not there yet." : `:\n${markText(cut(text, longestFile))}`}`
      ),
      `What people said:\n${markText(material.map(({ words }) => words).join("\n\n---\n\n"))}`
    ]
    const draft = yield* Agent.answer(author, shown.join("\n\n"))
    const proposal = Proposal.make(changesOf(draft, paths, files, material))
    if (proposal.changes.length === 0) return nothing
    const details: JsonObject = { diff: Proposal.render(proposal), digest: proposal.digest }
    const isWanted = yield* ask(Question.confirm("Keep these changes of memory and skills?", details))
    if (!isWanted) return { status: "refused", proposal, ignored } satisfies Result
    yield* Agent.step("apply", Effect.as(Proposal.apply(proposal), null), Schema.Null)
    return { status: "kept", proposal, ignored } satisfies Result
  })

  return Agent.program({
    name: "dream",
    description: "Proposes changes of memory files and skills from finished conversations",
    input: Input,
    output: Result,
    middleware: refused === undefined ? [Middleware.suspendable] : [refused],
    run
  })
}

const refuseQuiet = makeEffectCheck("Dream.quietThreads", shapes.dreamQuietThreads)

/** Finds the threads that nobody wrote to for a while, the last one first: at most 50. */
export const quietThreads = Effect.fnUntraced(function* (options: {
  /** The time since the last entry. */
  readonly quiet: Duration.Input
  /** Leaves out threads without an entry since then, in milliseconds since the epoch. Default: none. */
  readonly since?: number | undefined
  /** Metadata that a thread must have, equal as JSON. Default: any. */
  readonly where?: JsonObject | undefined
}): Effect.fn.Return<ReadonlyArray<string>, SessionError, SessionStore> {
  yield* refuseQuiet(options) ?? Effect.void
  const { quiet, since = 0, where = {} } = options
  const store = yield* SessionStore
  const now = yield* Clock.currentTimeMillis
  const { items } = yield* store.list({ where, limit: 1_000 })
  const until = now - Duration.toMillis(Duration.fromInputUnsafe(quiet))
  return items
    .filter(({ updatedAt }) => updatedAt >= since && updatedAt <= until)
    .slice(0, 50)
    .map(({ threadId }) => threadId)
})
