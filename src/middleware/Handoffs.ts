/**
 * Hands a conversation over to another agent: `transfer_to_<name>` lets it answer in this agent's place from then on.
 *
 * The other agent gets the conversation, and its answer becomes the run's answer unchanged. Later runs on the same
 * state (a thread, or `state` and `history` of the last result) continue with it. With {@link peers} it can pass the
 * conversation on, or back.
 *
 * ```ts
 * import { Agent } from "effect-deepagents"
 * import { Handoffs } from "effect-deepagents/middleware"
 *
 * const billing = Agent.make({
 *   name: "billing",
 *   description: "Invoices, payments and refunds",
 *   prompt: "You answer questions about bills.",
 *   middleware: [Handoffs.peers({ reception: "Everything else" })]
 * })
 *
 * const reception = Agent.make({
 *   name: "reception",
 *   prompt: "You find out what the customer wants.",
 *   middleware: [Handoffs.make({ agents: [billing] })]
 * })
 * ```
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Agent from "../core/Agent.ts"
import * as AgentState from "../core/AgentState.ts"
import { type TurnPart, turnPurpose } from "../core/ChatModel.ts"
import { IdGenerator } from "../core/IdGenerator.ts"
import * as Message from "../core/Message.ts"
import * as Middleware from "../core/Middleware.ts"
import * as Ruling from "../core/Ruling.ts"
import type { Run } from "../core/Run.ts"
import { makeMiddlewareCheck } from "../core/schema/invalid.ts"
import * as Tool from "../core/Tool.ts"
import { ToolContext } from "../core/ToolContext.ts"
import * as ToolError from "../core/ToolError.ts"
import * as ToolOutput from "../core/ToolOutput.ts"
import { defined } from "../support/json/defined.ts"
import {
  conversation,
  type TurnMessages,
  slotPrefix,
  speechSlot,
  turnsIn,
  withoutOpenTurn
} from "./internal/handoffs.ts"
import { countProblem } from "./internal/limits.ts"
import * as shapes from "./internal/shapes.ts"

const name = "Handoffs"

const peersName = "HandoffPeers"

/** The default limit of handovers in one run. */
const defaultMaxTransfers = 8

/** The name of the agent that has the conversation; `null` for the agent that started it. */
export const active = AgentState.slot("handoffs.active", { schema: Schema.NullOr(Schema.String), initial: null })

/** The number of handovers so far, and their run. */
const transfers = AgentState.slot("handoffs.transfers", {
  schema: Schema.Struct({ runId: Schema.String, count: Schema.Finite }),
  initial: { runId: "", count: 0 }
})

/** The peer that received the conversation from an agent with {@link peers}, and the call of the handover. */
const requested = AgentState.slot("handoffs.requested", {
  schema: Schema.NullOr(
    Schema.Struct({ to: Schema.String, callId: Schema.String, message: Schema.optionalKey(Schema.String) })
  ),
  initial: null
})

/** Names the tool for handing over to an agent. Characters that tool names exclude become `_`. */
const toolName = (agent: string): string => `transfer_to_${agent.replaceAll(/[^A-Za-z0-9_-]/g, "_")}`

const parameters = {
  message: Schema.optionalKey(
    Schema.String.annotate({ description: "What the other agent should know beyond the conversation, which it gets." })
  )
}

const describe = (name: string, description: string): string =>
  `Hands the conversation over to "${name}", who answers the user from here on${description === "" ? "." : `: ${description}`}`

/** The source of messages from one agent to the next. */
const source = "handoff"

/** Makes the input of the next agent. A conversation that ends with an answer needs a request. */
const opening = (history: ReadonlyArray<Message.Message>, message: string | undefined): Agent.Input => {
  if (message !== undefined && message.trim() !== "") {
    return Message.human(`The conversation was handed over to you, with this note: ${message}`, { source })
  }
  const last = history.at(-1)
  return last === undefined || last.role === "ai"
    ? Message.human("The conversation was handed over to you. Go on with it.", { source })
    : []
}

/** Returns the history of this run, with the messages of other agents. */
const historyOf = Effect.fnUntraced(function* (run: Run, messages: ReadonlyArray<Message.Message>) {
  const turns = turnsIn(yield* run.state.names(slotPrefix))
  const entries = yield* Effect.forEach(turns, (turn) =>
    Effect.map(run.state.get(speechSlot(turn)), (one): readonly [string, TurnMessages] => [turn, one])
  )
  return conversation(withoutOpenTurn(messages), new Map(entries))
})

/** Counts a transfer and reports whether the run had too many. */
const isTooMany = Effect.fnUntraced(function* (run: Run, most: number) {
  const { count, runId } = yield* run.state.get(transfers)
  const next = runId === run.runId ? count + 1 : 1
  yield* run.state.set(transfers, { runId: run.runId, count: next })
  return next > most
})

type AnyAgent = Agent.Agent<unknown, unknown, unknown>

interface Settings {
  readonly byName: ReadonlyMap<string, AnyAgent>
  readonly filter: (history: ReadonlyArray<Message.Message>) => ReadonlyArray<Message.Message>
  readonly maxTransfers: number
}

/** Runs the agents one after the other for as long as they hand the conversation on. */
const takeOver = Effect.fnUntraced(function* (settings: Settings, first: string, note: string | undefined) {
  const { callId, messages, run } = yield* ToolContext
  const now = yield* messages
  const turn = now.findLast((message) => message.role === "ai")?.id ?? callId
  const history = yield* historyOf(run, now)
  const spokenMessages: Array<Message.Message> = []
  const end = (
    text: string,
    to: string | null,
    options: { readonly isError?: boolean | undefined; readonly returnDirect?: boolean | undefined }
  ) =>
    ToolOutput.make(text, {
      ...options,
      state: [AgentState.assign(active, to), AgentState.assign(speechSlot(turn), { callId, messages: spokenMessages })]
    })
  let current = yield* run.state.get(active)
  let from = run.agent
  let to = first
  let message = note
  for (;;) {
    const agent = settings.byName.get(to)
    if (agent === undefined) {
      const why = message === undefined || message === "" ? "" : ` It says: ${message}`
      const who = to === run.agent ? "to you" : `to "${to}", who is not here, so it is yours`
      return end(`"${from}" handed the conversation back ${who}.${why} Go on with it.`, null, {})
    }
    const isGoingOn = from === run.agent && to === current
    if (!isGoingOn && (yield* isTooMany(run, settings.maxTransfers))) {
      const text = `The conversation was handed over ${settings.maxTransfers} times; nobody else takes it over now. Answer yourself.`
      return end(text, null, { isError: true })
    }
    const base = settings.filter([...history, ...spokenMessages])
    const baseIds = new Set(base.map(({ id }) => id))
    const ended = yield* Effect.result(Agent.delegate(agent, opening(base, message), { history: base }))
    if (Result.isFailure(ended)) {
      const { message: problem } = ToolError.fromUnknown(ended.failure)
      return end(`"${to}" could not go on with the conversation: ${problem}`, current, { isError: true })
    }
    const result = ended.success
    const wanted = Result.getOrElse(AgentState.read(result.state, requested), () => null)
    const own = result.messages.filter(({ id }) => !baseIds.has(id))
    const by = own.findLast((one) => one.role === "ai" && one.toolCalls.some(({ id }) => id === wanted?.callId))
    spokenMessages.push(
      ...(wanted === null || by === undefined
        ? own
        : conversation(own, new Map([[by.id, { callId: wanted.callId, messages: [] }]])))
    )
    current = to
    if (wanted === null) {
      const { text } = result
      return text === ""
        ? end(`"${to}" ended without an answer.`, to, { isError: true })
        : end(text, to, { returnDirect: true })
    }
    from = to
    to = wanted.to
    message = wanted.message
  }
})

const makeTool = <R>(settings: Settings, agent: AnyAgent): Tool.Tool<R | ToolContext> =>
  Tool.make(toolName(agent.name), {
    description: describe(agent.name, agent.description),
    parameters,
    annotations: { resumable: true, destructive: false, openWorld: false },
    reaches: Agent.toolNames(agent),
    // `make` restores the agents' requirements, which their types had.
    execute: ({ message }) =>
      takeOver(settings, agent.name, message) as Effect.Effect<
        ToolOutput.ToolOutput,
        ToolError.ToolError,
        R | ToolContext
      >
  })

/** Allows one transfer a turn: two agents can't both continue a conversation. */
const onlyOne =
  (tools: ReadonlySet<string>) =>
  (
    _run: Run,
    calls: ReadonlyArray<Middleware.PreparedCall>
  ): Effect.Effect<ReadonlyArray<Ruling.Refuse | undefined>> => {
    const first = calls.find(({ name }) => tools.has(name))
    return Effect.succeed(
      calls.map((call) =>
        call === first || !tools.has(call.name)
          ? undefined
          : Ruling.refuse("Handoffs", "Not executed: a conversation can be handed over once a turn.")
      )
    )
  }

const isNew = (messages: ReadonlyArray<Message.Message>): boolean => {
  const last = messages.at(-1)
  return last?.role === "human" && last.source === undefined
}

/** The turn of an agent whose conversation another agent has: it hands over without a model call. */
const handOver = (agent: string): Effect.Effect<TurnPart> =>
  Effect.map(IdGenerator, (makeId) => ({
    _tag: "TurnDone",
    message: Message.ai("", {
      id: makeId(),
      source,
      toolCalls: [{ id: makeId(), name: toolName(agent), arguments: {} }]
    })
  }))

const refuseMake = makeMiddlewareCheck(name, shapes.handoffsMake)

/**
 * Offers `transfer_to_<name>` for these agents. `filter` makes the next agent's history from the conversation: by
 * default all of it, with other agents' messages and without the handover calls. It must be pure. `maxTransfers` (8)
 * limits the handovers of one run; then this agent has to answer.
 *
 * This agent's model sees the failure of another agent. An agent with an `output` schema gets the other's answer as a
 * tool result, and answers in its schema itself.
 */
export const make = <const Agents extends ReadonlyArray<AnyAgent>>(options: {
  /** The agents that may take over the conversation. */
  readonly agents: Agents
  /**
   * Makes the next agent's history from the conversation; it must be pure. Default: all of it, without the handover
   * calls.
   */
  readonly filter?: ((history: ReadonlyArray<Message.Message>) => ReadonlyArray<Message.Message>) | undefined
  /** The most handovers of one run; then this agent must answer. Default: 8. */
  readonly maxTransfers?: number | undefined
}): Middleware.Middleware<never, Agent.Services<Agents[number]> | ToolContext> => {
  const refused = refuseMake(options)
  if (refused !== undefined) return refused
  type R = Agent.Services<Agents[number]>
  const settings: Settings = {
    byName: new Map(options.agents.map((agent) => [agent.name, agent])),
    filter: options.filter ?? ((history) => history),
    maxTransfers: options.maxTransfers ?? defaultMaxTransfers
  }
  const tools = options.agents.map((agent) => makeTool<R>(settings, agent))
  return Middleware.make<never, R | ToolContext>({
    name,
    check: () => countProblem(name, { maxTransfers: settings.maxTransfers }),
    state: [active, transfers],
    tools,
    ...(tools.length === 0
      ? {}
      : {
          prompt: `Hand the conversation over (${tools.map(({ name }) => name).join(", ")}) when another agent is the right one for it. Call one such tool and nothing beside it; the user gets that agent's answer, so don't answer yourself.`
        }),
    rulings: onlyOne(new Set(tools.map(({ name }) => name))),
    wrapModelCall: (request, next, run) =>
      request.purpose === turnPurpose && isNew(run.messages)
        ? Stream.unwrap(
            Effect.map(run.state.get(active), (name) =>
              name !== null && request.tools.some((tool) => tool.name === toolName(name))
                ? Stream.fromEffect(handOver(name))
                : next(request)
            )
          )
        : next(request)
  })
}

const makePeer = (name: string, description: string): Tool.Tool<ToolContext> =>
  Tool.make(toolName(name), {
    description: describe(name, description),
    parameters,
    execute: Effect.fnUntraced(function* ({ message }) {
      const { callId } = yield* ToolContext
      return ToolOutput.make(`The conversation goes on with "${name}".`, {
        returnDirect: true,
        state: [AgentState.assign(requested, defined({ to: name, callId, message }))]
      })
    })
  })

/**
 * Offers `transfer_to_<name>` to an agent that receives conversations: by the names of the next agents, with a
 * description of each. The agent with {@link make} performs the handover. Its own name, or an unknown name, hands the
 * conversation back.
 */
export const peers = (names: Readonly<Record<string, string>>): Middleware.Middleware<never, ToolContext> => {
  const tools = Object.entries(names).map(([name, description]) => makePeer(name, description))
  return Middleware.make<never, ToolContext>({
    name: peersName,
    state: [requested],
    tools,
    rulings: onlyOne(new Set(tools.map(({ name }) => name))),
    // Where a direct result does not end a run (an output schema, a run that is taken up again), this does.
    beforeModel: Effect.fnUntraced(function* (run: Run) {
      const wanted = yield* run.state.get(requested)
      if (wanted === null) return undefined
      const last = run.messages.findLastIndex((message) => message.role !== "tool")
      const isLast = run.messages
        .slice(last + 1)
        .some((message) => message.role === "tool" && message.toolCallId === wanted.callId)
      if (isLast) return Middleware.end("completed")
      yield* run.state.set(requested, null)
      return undefined
    })
  })
}
