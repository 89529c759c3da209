/**
 * Runs hooks at the events of an agent: before and after a tool, for a message, at the end. They may refuse, ask, change
 * arguments, or add text.
 *
 * Events and JSON have the form of Claude Code, so its hooks run as they are.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent } from "effect-deepagents"
 * import { Hooks } from "effect-deepagents/middleware"
 *
 * const noTables = Hooks.make({
 *   hooks: [
 *     {
 *       event: "PreToolUse",
 *       matcher: "drop_table",
 *       handler: { name: "no-tables", run: () => Effect.succeed({ decision: "deny", reason: "Tables stay." }) }
 *     }
 *   ]
 * })
 *
 * const agent = Agent.make({ name: "careful", prompt: "You tidy up.", middleware: [noTables] })
 * ```
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as AgentState from "../core/AgentState.ts"
import { turnPurpose } from "../core/ChatModel.ts"
import * as Content from "../core/Content.ts"
import type { Json, JsonObject } from "../core/Json.ts"
import * as Message from "../core/Message.ts"
import * as Middleware from "../core/Middleware.ts"
import * as Ruling from "../core/Ruling.ts"
import type { Run } from "../core/Run.ts"
import { makeMiddlewareCheck } from "../core/schema/invalid.ts"
import * as ToolOutput from "../core/ToolOutput.ts"
import * as Attached from "../support/effect/attached.ts"
import { type HookOutcome, fireHooks } from "./internal/hooks/fire.ts"
import { type Hook, type HookEvent, type HookFailed, type Verdict } from "./internal/hooks/model.ts"
import * as shapes from "./internal/shapes.ts"

export { command, http, type Place } from "./internal/hooks/handlers.ts"
export { type Handler, type Hook, type HookEvent, HookFailed, type Verdict } from "./internal/hooks/model.ts"
export { fromSettings, type FromSettings } from "./internal/hooks/settings.ts"

const name = "Hooks"

/** How often the hooks of one run may refuse its end in a row. */
const mostContinued = 10

/** Options of hooks. */
export interface Options<R = never> {
  /** The hooks, which run at once at their event. */
  readonly hooks: ReadonlyArray<Hook<R>>
  /** The working folder that hooks are told. Default: none. */
  readonly cwd?: string | undefined
  /** Gets the id of each call and whether hooks allowed it, for whoever decides on questions. Default: none. */
  readonly onDecision?: ((callId: string, isAllowed: boolean) => void) | undefined
}

/** Text that hooks added behind a message. */
const notes = AgentState.slot("hooks.notes", {
  schema: Schema.Array(Schema.Struct({ after: Schema.String, text: Schema.String })),
  initial: []
})

/** The last message of the user that hooks have seen. */
const lastSeen = AgentState.slot("hooks.seen", { schema: Schema.String, initial: "" })

/** The state of hooks in one run. */
interface RunHooks {
  readonly verdicts: Map<string, { readonly verdict: Verdict; key: string | undefined }>
  stop: string | undefined
  continued: number
}

/**
 * Runs the hooks of an event outside of a run: `SessionEnd`, `Notification`. `about` are the names that matchers are
 * compared with.
 */
export const fire = <R>(
  hooks: ReadonlyArray<Hook<R>>,
  event: HookEvent,
  input: JsonObject = {},
  about: ReadonlyArray<string> = []
): Effect.Effect<{ readonly verdict: Verdict; readonly failures: ReadonlyArray<HookFailed> }, never, R> =>
  fireHooks(hooks, event, about, input)

/** The names of a call's tool: first the name that hooks of Claude Code know. */
const namesOf = ({ annotations: { aliases = [], server, serverTool }, name: tool }: Middleware.PreparedCall) => [
  ...(server === undefined || serverTool === undefined ? [] : [`mcp__${server}__${serverTool}`]),
  ...aliases,
  tool
]

const notice = (texts: ReadonlyArray<string>): string => `<notice>\n${texts.join("\n\n")}\n</notice>`

/** Puts the added texts behind their messages. */
const withNotes = (
  messages: ReadonlyArray<Message.Message>,
  added: ReadonlyArray<{ readonly after: string; readonly text: string }>
): ReadonlyArray<Message.Message> => {
  if (added.length === 0) return messages
  const byMessage = new Map(added.map(({ after, text }) => [after, text]))
  return messages.flatMap((message) => {
    const text = byMessage.get(message.id)
    return text === undefined
      ? [message]
      : [message, Message.human(text, { id: `${message.id}-hooks`, source: "hooks" })]
  })
}

const sessionOf = (run: Run): string => run.threadId ?? run.runId

const toRuling = ({ decision, reason }: Verdict): Ruling.Ruling | undefined => {
  if (decision === "deny") return Ruling.refuse(name, reason ?? "A hook refused this call.")
  if (decision === "ask") return Ruling.ask(name, { reason })
  return decision === "allow" ? Ruling.allow(name, { settles: true }) : undefined
}

/** Adds texts behind a message. */
const addNotes = (run: Run, after: string, context: ReadonlyArray<string>) =>
  run.state.update(notes, (before) => {
    const mine = before.find((one) => one.after === after)
    const text = mine === undefined ? notice(context) : `${mine.text}\n${notice(context)}`
    return [...before.filter((one) => one !== mine), { after, text }]
  })

const refuseMake = makeMiddlewareCheck(name, shapes.hooksMake)

/**
 * Runs hooks at the events of an agent and its sub-agents. The strictest of several answers counts. `allow` takes away
 * the question of the tool itself and nothing else. A hook that fails or is late counts only with `blocking`; it is a
 * `Warning` event (`hook-failed`), once.
 */
export const make = <R = never>(options: Options<R>): Middleware.AskingMiddleware<never, R> => {
  const refused = refuseMake(options)
  if (refused !== undefined) return refused
  const { cwd, hooks, onDecision } = options
  const runs = Attached.make<Run, RunHooks>()
  const reportedFailures = new Set<string>()
  const started = new Set<string>()
  const has = (event: HookEvent): boolean => hooks.some((hook) => hook.event === event)

  const knownOf = (run: Run): RunHooks => {
    const memory = runs.get(run) ?? { verdicts: new Map(), stop: undefined, continued: 0 }
    runs.set(run, memory)
    return memory
  }

  const fireIn = Effect.fnUntraced(function* (
    run: Run,
    event: HookEvent,
    about: ReadonlyArray<string>,
    input: JsonObject
  ): Effect.fn.Return<Verdict, never, R> {
    const body = { session_id: sessionOf(run), agent: run.agent, ...(cwd === undefined ? {} : { cwd }), ...input }
    const fired: HookOutcome = yield* fireHooks(hooks, event, about, body)
    for (const failure of fired.failures) {
      if (reportedFailures.has(failure.message)) continue
      reportedFailures.add(failure.message)
      yield* run.warn("hook-failed", failure.message)
    }
    knownOf(run).stop = fired.verdict.stop ?? knownOf(run).stop
    return fired.verdict
  })

  /** Fires the hooks for a session that begins and for messages that the model has not read. */
  const readMessages = Effect.fnUntraced(function* (run: Run) {
    const users = run.messages.filter((message) => message.role === "human" && message.source === undefined)
    const before = yield* run.state.get(lastSeen)
    const fresh = users.slice(users.findIndex(({ id }) => id === before) + 1)
    const last = fresh.at(-1)
    if (last === undefined) return undefined
    yield* run.state.set(lastSeen, last.id)
    if (!started.has(sessionOf(run))) {
      started.add(sessionOf(run))
      const source = run.messages.some(({ role }) => role === "ai") ? "resume" : "startup"
      const { context = [] } = yield* fireIn(run, "SessionStart", [source], { source })
      if (context.length > 0) yield* addNotes(run, last.id, context)
    }
    // A conversation that was there before was read before.
    for (const message of before === "" ? [last] : fresh) {
      const prompt = Message.text(message)
      const { context = [], decision, reason } = yield* fireIn(run, "UserPromptSubmit", [], { prompt })
      if (decision === "deny") return Middleware.end("refused", Message.ai(reason ?? "A hook refused this message."))
      if (context.length > 0) yield* addNotes(run, message.id, context)
    }
    return undefined
  })

  /** Fires the hooks before a call, once for the same arguments. */
  const judge = Effect.fnUntraced(function* (run: Run, call: Middleware.PreparedCall) {
    const { verdicts } = knownOf(run)
    const key = JSON.stringify(call.arguments)
    const before = verdicts.get(call.id)
    if (before !== undefined && (before.key === undefined || before.key === key)) {
      before.key = key
      return before.verdict
    }
    const names = namesOf(call)
    const verdict = yield* fireIn(run, "PreToolUse", names, {
      tool_name: names[0] ?? call.name,
      tool_input: call.given(),
      tool_use_id: call.id
    })
    // The arguments that a hook gave are encoded anew before they are ruled on.
    verdicts.set(call.id, { verdict, key: verdict.input === undefined ? key : undefined })
    return verdict
  })

  const rulingOf = (run: Run, call: Middleware.PreparedCall): Effect.Effect<Ruling.Ruling | undefined, never, R> =>
    Effect.map(judge(run, call), (verdict) => {
      onDecision?.(call.id, verdict.decision === "allow")
      return toRuling(verdict)
    })

  const afterCall = Effect.fnUntraced(function* (
    run: Run,
    call: Middleware.PreparedCall,
    output: ToolOutput.ToolOutput
  ) {
    const before = knownOf(run).verdicts.get(call.id)?.verdict.context ?? []
    const response: Json = { output: ToolOutput.text(output).slice(0, 100_000), is_error: output.isError }
    const names = namesOf(call)
    const verdict = yield* fireIn(run, "PostToolUse", names, {
      tool_name: names[0] ?? call.name,
      tool_input: call.given(),
      tool_response: response,
      tool_use_id: call.id
    })
    const refusal = verdict.decision === "deny" ? [verdict.reason ?? "A hook objects to this result."] : []
    const texts = [...before, ...refusal, ...(verdict.context ?? [])]
    return texts.length === 0 ? output : { ...output, content: [...output.content, Content.text(notice(texts))] }
  })

  const afterAnswer = Effect.fnUntraced(function* (run: Run) {
    const memory = knownOf(run)
    const event = run.depth === 0 ? "Stop" : "SubagentStop"
    const verdict = yield* fireIn(run, event, [run.agent], { stop_hook_active: memory.continued > 0 })
    if (verdict.stop !== undefined || verdict.decision !== "deny") return undefined
    if (memory.continued >= mostContinued) {
      yield* run.warn("hook-failed", `The hooks for ${event} refused the end ${mostContinued} times; it ends.`)
      return undefined
    }
    memory.continued += 1
    return Middleware.continueWith(Message.human(verdict.reason ?? "Go on.", { source: "hooks" }))
  })

  const hasTools = has("PreToolUse")
  return Middleware.make<never, R>({
    name,
    inherit: true,
    asks: true,
    state: [notes, lastSeen],
    beforeModel: (run) =>
      Effect.suspend((): Effect.Effect<Middleware.Directive | undefined, never, R> => {
        const { stop } = knownOf(run)
        if (stop !== undefined) return Effect.succeed(Middleware.end("stopCondition", Message.ai(stop)))
        return run.depth === 0 ? readMessages(run) : Effect.undefined
      }),
    afterModel: (run, message) =>
      message.toolCalls.length === 0 && (has("Stop") || has("SubagentStop")) ? afterAnswer(run) : Effect.undefined,
    rewriteArguments: (run, calls) =>
      hasTools
        ? Effect.forEach(calls, (call) => Effect.map(judge(run, call), ({ input }) => input), { concurrency: 8 })
        : Effect.succeed([]),
    rulings: (run, calls) =>
      hasTools
        ? Effect.forEach(calls, (call) => rulingOf(run, call), { concurrency: 8 })
        : Effect.succeed(calls.map(() => undefined)),
    wrapModelCall: (request, next, run) =>
      request.purpose === turnPurpose
        ? Stream.unwrap(
            Effect.map(run.state.get(notes), (added) =>
              next(added.length === 0 ? request : { ...request, messages: withNotes(request.messages, added) })
            )
          )
        : request.purpose === "summary" && has("PreCompact")
          ? Stream.unwrap(Effect.as(fireIn(run, "PreCompact", ["auto"], { trigger: "auto" }), next(request)))
          : next(request),
    wrapToolCall: (call, next, run) =>
      hasTools || has("PostToolUse") ? Effect.flatMap(next(call), (output) => afterCall(run, call, output)) : next(call)
  })
}
