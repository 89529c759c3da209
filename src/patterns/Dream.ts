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
import type { Backend } from "../core/Backend.ts"
import type { BackendError } from "../core/BackendError.ts"
import type { ChatModel } from "../core/ChatModel.ts"
import type { JsonObject } from "../core/Json.ts"
import * as Middleware from "../core/Middleware.ts"
import type { ModelError } from "../core/ModelError.ts"
import * as Question from "../core/Question.ts"
import { makeMiddlewareCheck } from "../core/schema/invalid.ts"
import type { SessionError } from "../core/SessionError.ts"
import { SessionStore } from "../core/SessionStore.ts"
import { ToolContext } from "../core/ToolContext.ts"
import type { ToolError } from "../core/ToolError.ts"
import * as Proposal from "../deep/Proposal.ts"
import { makeEffectCheck } from "../support/options/check.ts"
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

const authorByModel = Agent.make({
  name: "dreamer",
  description: "Proposes changes of memory and skills",
  prompt:
    "You look back at what people said in finished conversations, and improve the memory files and skills of an agent: what people want done in which way, what they corrected, what is not true any more. Change little: join what belongs together, and remove what was corrected. Leave out what mattered once only, and secrets. Each change needs words of people that led to it, copied exactly. Propose nothing if nothing helps.",
  output: Proposal.Draft
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
  readonly author?: Agent.Agent<Proposal.Draft, E, R> | undefined
}): Agent.Program<
  Input,
  Result | undefined,
  E | AgentError | SessionError | BackendError | Proposal.ProposalError | ToolError,
  R | SessionStore | Backend
> => {
  const refused = refuseMake(options)
  const { paths } = options
  // Without an author of the caller, E and R belong to the default one.
  const author =
    options.author ??
    (authorByModel as Agent.Agent<Proposal.Draft, unknown, unknown> as Agent.Agent<Proposal.Draft, E, R>)

  const run = Effect.fnUntraced(function* ({ threads }: Input) {
    const { ask } = yield* ToolContext
    const { ignored, material } = yield* Agent.step("threads", Proposal.readWords(threads), Proposal.Words)
    const nothing: Result = { status: "nothing", proposal: Proposal.make([]), ignored }
    if (material.length === 0) return nothing
    const files = yield* Agent.step("files", Proposal.readFiles(paths), Proposal.Files)
    const draft = yield* Agent.answer(author, Proposal.describe(paths, files, material))
    const proposal = Proposal.fromDraft(draft, paths, files, material)
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
