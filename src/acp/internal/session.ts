/** A session at work: its turns, one at a time, and the state that the client has seen. */
import type * as Acp from "@agentclientprotocol/sdk"
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Agent from "../../core/Agent.ts"
import type { AgentEvent } from "../../core/AgentEvent.ts"
import * as Approval from "../../core/Approval.ts"
import * as Checkpoint from "../../core/Checkpoint.ts"
import { Journal } from "../../core/Journal.ts"
import * as Message from "../../core/Message.ts"
import * as Sandbox from "../../core/Sandbox.ts"
import type { Service as Store } from "../../core/SessionStore.ts"
import type { StopReason } from "../../core/StopReason.ts"
import { loadThread, makeJournal } from "../../sessions/journal.ts"
import { cleanLine } from "../../support/text/clean.ts"
import { cut } from "../../support/text/text.ts"
import * as Change from "../../view/Change.ts"
import { AcpError } from "../AcpError.ts"
import type { Client } from "./client.ts"
import { contentOf, wordsOf } from "./content.ts"
import { withEditor } from "./files.ts"
import type { Ask, SessionOpening, Session } from "./model.ts"
import { askChoice, askPerson } from "./permission.ts"
import * as Settings from "./settings.ts"
import { withTerminal } from "./terminal.ts"
import * as Updates from "./updates.ts"

/** A request that waits for a decision. */
interface WaitingRequest {
  readonly request: Approval.Request
  readonly decided: Deferred.Deferred<Approval.Decision>
}

/** A turn at work. */
interface Turn {
  readonly fiber: Fiber.Fiber<Acp.StopReason, unknown>
  handle: Agent.Handle<unknown, unknown> | undefined
  isCancelled: boolean
}

/** An open session, and its changing state. */
export interface Live {
  readonly opening: SessionOpening
  readonly session: Session
  readonly scope: Scope.Closeable
  readonly client: Client
  readonly store: Store
  readonly place: Updates.Place
  /** Requests of which the client knows the call, by their ids. */
  readonly announced: Map<string, Deferred.Deferred<void>>
  readonly waiting: Set<WaitingRequest>
  state: Updates.State
  /** The end of the thread that the client knows, and the number of messages up to it. */
  seen: { readonly leaf: string | null; readonly messages: number }
  turn: Turn | undefined
  asked: number
}

export const makeLive = (parts: Pick<Live, "client" | "opening" | "scope" | "session" | "store">): Live => {
  const { client, opening, session } = parts
  let described: Agent.Agent<unknown, unknown, unknown> | undefined
  let tools: ReadonlyMap<string, Updates.ToolFacts> = new Map()
  const { compaction, notices } = client.can().session ?? {}
  return {
    ...parts,
    place: {
      cwd: opening.cwd,
      annotations: (tool) => {
        const agent = session.agent()
        if (agent !== described) {
          described = agent
          tools = new Map(Agent.describe(agent).tools.map((one) => [one.name, one]))
        }
        return tools.get(tool)
      },
      client: { compaction: Predicate.isObject(compaction), notices: Predicate.isObject(notices) }
    },
    announced: new Map(),
    waiting: new Set(),
    state: Updates.empty,
    seen: { leaf: null, messages: 0 },
    turn: undefined,
    asked: 0
  }
}

/** Sends updates in their order. A client that reads slowly slows the run. */
export const send = ({ client, opening }: Live, updates: ReadonlyArray<Acp.SessionUpdate>): Effect.Effect<void> =>
  Effect.forEach(updates, (update) => client.update(opening.threadId, update), { discard: true })

/** Takes a step of the state, and sends its updates. */
const advance = (live: Live, [state, updates]: readonly [Updates.State, ReadonlyArray<Acp.SessionUpdate>]) => {
  live.state = state
  return send(live, updates)
}

const announcedOf = (live: Live, id: string): Deferred.Deferred<void> => {
  const announcement = live.announced.get(id) ?? Deferred.makeUnsafe<void>()
  live.announced.set(id, announcement)
  return announcement
}

const show = (live: Live, event: AgentEvent): Effect.Effect<void> => {
  const delivery = advance(live, Updates.ofEvent(live.state, event, live.place))
  return event._tag === "ApprovalRequested"
    ? Effect.andThen(delivery, Deferred.succeed(announcedOf(live, event.id), undefined))
    : delivery
}

/** Joins the texts that follow each other. Events come together while the client reads slower than the model talks. */
const joinTexts = (events: ReadonlyArray<AgentEvent>): ReadonlyArray<AgentEvent> => {
  const joined: Array<AgentEvent> = []
  for (const event of events) {
    const last = joined.at(-1)
    const isSame = last?.runId === event.runId
    if (isSame && last._tag === "TextDelta" && event._tag === "TextDelta") {
      joined[joined.length - 1] = { ...event, text: last.text + event.text }
    } else if (isSame && last._tag === "ReasoningDelta" && event._tag === "ReasoningDelta") {
      joined[joined.length - 1] = { ...event, text: last.text + event.text }
    } else joined.push(event)
  }
  return joined
}

/** Decides again on pending requests, by a new mode or a new approval for good. */
export const review = (live: Live): Effect.Effect<void> =>
  Effect.forEach(
    [...live.waiting],
    ({ decided, request }) =>
      Effect.flatMap(live.session.gate.decide(request), (decision) =>
        decision === undefined ? Effect.void : Deferred.succeed(decided, decision)
      ),
    { discard: true }
  )

/** Decides by the gate of the session, or asks the person once the client knows the call. */
const makeApprovals = (live: Live, machine: Sandbox.Service): Approval.Approvals["Service"] => ({
  decide: Effect.fnUntraced(function* (request) {
    const { client, opening, session, waiting } = live
    const decision = yield* session.gate.decide(request)
    if (decision !== undefined) return decision
    // Time decides on such a request; a person need not.
    if (request.rule === Approval.byTime) return yield* Effect.never
    const change = yield* Effect.orElseSucceed(Change.ofCall(machine, request), () => undefined)
    yield* Deferred.await(announcedOf(live, request.id))
    const one: WaitingRequest = { request, decided: yield* Deferred.make<Approval.Decision>() }
    const answer = askPerson({
      client,
      sessionId: opening.threadId,
      cwd: opening.cwd,
      toolCallId: Updates.callId(live.state, request),
      request,
      change,
      gate: session.gate
    })
    return yield* Effect.sync(() => waiting.add(one)).pipe(
      Effect.andThen(Effect.raceFirst(answer, Deferred.await(one.decided))),
      Effect.ensuring(
        Effect.sync(() => {
          waiting.delete(one)
          live.announced.delete(request.id)
        })
      ),
      Effect.tap(({ _tag }) => (_tag === "Approve" ? review(live) : Effect.void))
    )
  })
})

/** The files and commands of a turn: the client's in front of the session's. */
const machineOf = (live: Live): Sandbox.Service => {
  const { client, opening, session } = live
  const { cwd, folders, threadId: sessionId } = opening
  const files = withEditor(session.machine, { client, sessionId, cwd, folders: [cwd, ...folders] })
  if (client.can().terminal !== true || session.machine.onHost !== true) return files
  return withTerminal(files, {
    client,
    sessionId,
    cwd,
    onTerminal: (call, terminalId) => {
      live.state = Updates.showing(live.state, call)
      const toolCallId = Updates.callId(live.state, call)
      return send(live, [
        { sessionUpdate: "tool_call_update", toolCallId, content: [{ type: "terminal", terminalId }] }
      ])
    }
  })
}

const stops: { readonly [reason in StopReason]: Acp.StopReason } = {
  completed: "end_turn",
  stopCondition: "end_turn",
  suspended: "end_turn",
  refused: "refusal",
  length: "max_tokens",
  maxRounds: "max_turn_requests",
  duplicateRounds: "max_turn_requests",
  "budget:cost": "max_turn_requests",
  "budget:rounds": "max_turn_requests",
  "budget:time": "max_turn_requests",
  "budget:tokens": "max_turn_requests",
  "budget:toolCalls": "max_turn_requests"
}

/** Creates the thread of a first message, and names a thread without a title after it. */
const describeThread = Effect.fnUntraced(function* (live: Live, title: string) {
  const { opening, session, store } = live
  const { cwd: folder, threadId } = opening
  const thread = yield* Effect.catchIf(
    store.info(threadId),
    ({ reason }) => reason._tag === "NotFound",
    () => store.create({ threadId, metadata: { title: "", folder, ...session.metadata?.() } })
  )
  if ((thread.metadata["title"] ?? "") !== "" || title === "") return
  yield* store.describe(threadId, { ...thread.metadata, title })
  yield* send(live, [{ sessionUpdate: "session_info_update", title }])
})

/** Asks the person at the client. */
const askOf =
  (live: Live): Ask =>
  (choice) => {
    live.asked += 1
    return askChoice(live.client, live.opening.threadId, `question-${live.asked}`, choice)
  }

/** Reads the end of the thread. `undefined` before its first message. */
const endOf = ({ opening, store }: Live) => Effect.orElseSucceed(loadThread(store, opening.threadId), () => undefined)

/** Notes the end of the thread, which the client has seen. */
const noteEnd = (live: Live) =>
  Effect.map(endOf(live), (thread) => {
    if (thread !== undefined) {
      live.seen = { leaf: thread.leaf.id, messages: thread.checkpoint?.messages.length ?? 0 }
    }
  })

const movedElsewhere = "The conversation was changed elsewhere, and goes on from there"

/** Shows the client the entries that another program added to the thread meanwhile. */
const catchUp = Effect.fnUntraced(function* (live: Live) {
  const thread = yield* endOf(live)
  if (thread === undefined || thread.leaf.id === live.seen.leaf) return
  const messages = thread.checkpoint?.messages ?? []
  const isLonger = messages.length > live.seen.messages
  if (isLonger) yield* advance(live, Updates.ofMessages(live.state, messages.slice(live.seen.messages), live.place))
  else yield* send(live, Updates.notice("warning", movedElsewhere, live.place))
})

/** Runs one turn to its end. */
const runTurn = Effect.fnUntraced(function* (live: Live, input: Agent.Input, title: string) {
  const { opening, session, store } = live
  const { threadId } = opening
  yield* session.prepare?.(askOf(live)) ?? Effect.void
  yield* catchUp(live)
  yield* describeThread(live, title)
  const machine = machineOf(live)
  const run = Effect.gen(function* () {
    const handle = yield* Agent.start(session.agent(), input, { threadId })
    if (live.turn !== undefined) live.turn.handle = handle
    yield* Stream.runForEachArray(handle.events, (events) =>
      Effect.forEach(joinTexts(events), (event) => show(live, event), { discard: true })
    )
    return yield* handle.await
  }).pipe(
    Effect.provide([
      Layer.succeed(Approval.Approvals, makeApprovals(live, machine)),
      Layer.succeedContext(Sandbox.context(machine)),
      Layer.succeed(Journal, makeJournal(store, { busy: "refuse", parts: true }))
    ])
  )
  return stops[(yield* Effect.ensuring(run, noteEnd(live))).stopReason]
}, Effect.scoped)

const failureOf = (cause: Cause.Cause<unknown>): AcpError => {
  const error = Cause.squash(cause)
  if (error instanceof AcpError) return error
  const detail = error instanceof Error && error.message !== "" ? error.message : String(error)
  return new AcpError({ reason: "Refused", method: "session/prompt", detail })
}

/** Cancels the turn of a session. It ends by itself, with updates of its open calls. */
export const cancel = (live: Live): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { turn } = live
    if (turn === undefined) return Effect.void
    turn.isCancelled = true
    return Effect.asVoid(turn.handle?.interrupt ?? Fiber.interrupt(turn.fiber))
  })

/** Goes on with the turn that a crash or a cancellation cut off. */
const resumeCommand = {
  name: "resume",
  description: "Goes on with the turn that was cut off, and asks again what waits for a decision"
}

/** The slash commands of a session. */
export const commandsOf = ({ session }: Live): Acp.SessionUpdate => ({
  sessionUpdate: "available_commands_update",
  availableCommands: [
    ...(session.commands?.() ?? []).map(({ argument, description, name }) => ({
      name: cleanLine(name),
      description: cleanLine(description),
      ...(argument === undefined ? {} : { input: { hint: cleanLine(argument) } })
    })),
    resumeCommand
  ]
})

/** Reads a prompt: a slash command or a message. `undefined` if a command showed all that there is. */
const inputOf = Effect.fnUntraced(function* (live: Live, prompt: ReadonlyArray<Acp.ContentBlock>) {
  const words = wordsOf(prompt)
  const [, name = "", argument = ""] = /^\/([^\s/]+)(?:\s+([^]*))?$/.exec(words) ?? []
  if (name === resumeCommand.name) return Checkpoint.resume(undefined)
  const command = live.session.commands?.().find((one) => one.name === name)
  if (command === undefined) return Message.human(yield* contentOf(prompt))
  const reply = yield* command.run(argument.trim(), askOf(live))
  if (reply._tag === "Send") return reply.input
  yield* send(live, [
    { sessionUpdate: "agent_message_chunk", content: { type: "text", text: reply.markdown } },
    ...Settings.updatesOf(live.session)
  ])
  return undefined
})

const busy = new AcpError({
  reason: "Busy",
  method: "session/prompt",
  detail: "another prompt is at work in this session; cancel it, or wait until it is done"
})

/**
 * Runs a prompt in the scope of the session. A second prompt of a session is refused while one is at work. A prompt whose
 * request is interrupted is cancelled.
 */
export const runPrompt = Effect.fnUntraced(function* (live: Live, prompt: ReadonlyArray<Acp.ContentBlock>) {
  if (live.turn !== undefined) return yield* busy
  const work = Effect.gen(function* () {
    const input = yield* inputOf(live, prompt)
    return input === undefined ? "end_turn" : yield* runTurn(live, input, cut(cleanLine(wordsOf(prompt)), 80))
  })
  // The context of the server has the services of its agents.
  const fiber = yield* Effect.forkIn(work as Effect.Effect<Acp.StopReason, unknown>, live.scope)
  const turn: Turn = { fiber, handle: undefined, isCancelled: false }
  live.turn = turn
  const exit = yield* Fiber.await(fiber).pipe(
    Effect.onInterrupt(() => cancel(live)),
    Effect.ensuring(
      Effect.sync(() => {
        live.turn = undefined
      })
    )
  )
  yield* advance(live, Updates.closeCalls(live.state))
  if (turn.isCancelled) return "cancelled"
  return Exit.isSuccess(exit) ? exit.value : yield* failureOf(exit.cause)
})
