/**
 * Calls of clients: each one is a run that reports its progress and asks the client's user. From protocol 2026-07-28 on, a
 * run that waits for a person outlives its request.
 */
import * as McpSchema from "effect/ai/McpSchema"
import { McpServer } from "effect/ai/McpServer"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as Schema from "effect/Schema"
import type { AgentEvent } from "../../../core/AgentEvent.ts"
import * as Approval from "../../../core/Approval.ts"
import type { Json, JsonObject } from "../../../core/Json.ts"
import { makeId } from "../../../core/Message.ts"
import { cut } from "../../../support/text/text.ts"
import { oneLine } from "../../../support/text/untrusted.ts"
import * as Form from "../../../view/Form.ts"
import { failed } from "./content.ts"
import * as Seal from "./seal.ts"

/** An open question. */
interface Ask {
  readonly id: string
  readonly request: Approval.Request
  readonly answer: Deferred.Deferred<Approval.Decision>
}

type Signal =
  | { readonly _tag: "Note"; readonly message: string }
  | { readonly _tag: "Ask"; readonly ask: Ask }
  | { readonly _tag: "Done"; readonly result: McpSchema.CallToolResult }

/** A run for a client, with its signals and its open question. */
interface Live {
  readonly id: string
  readonly signals: Queue.Queue<Signal>
  readonly fiber: Fiber.Fiber<void>
  asked: Ask | undefined
}

/** The line from a run to its client: for questions and progress. */
export interface Line {
  readonly decide: (request: Approval.Request) => Effect.Effect<Approval.Decision>
  readonly tell: (event: AgentEvent) => Effect.Effect<void>
}

/** The most unread notes on progress. Further ones are dropped. */
const mostNotes = 200
const mostWaiting = 1000
const patience = 600_000

const describeProgress = (progress: Json): string =>
  cut(oneLine(typeof progress === "string" ? progress : JSON.stringify(progress)), 200)

/** Describes an event on one line. Returns `undefined` for events that are no steps. */
const noteOf = (event: AgentEvent): string | undefined => {
  if (event._tag === "RoundStarted") return `${event.path.at(-1) ?? "the agent"}: round ${event.round}`
  if (event._tag === "ToolCalled") return `${event.toolName}: called`
  if (event._tag === "ToolProgress") return `${event.toolName}: ${describeProgress(event.progress)}`
  if (event._tag === "ToolCompleted") return `${event.toolName}: done`
  return event._tag === "ToolFailed" ? `${event.toolName}: failed` : undefined
}

const isStateless = (version: string): boolean => version >= "2026-07-28"

const decodeForm = Schema.decodeUnknownEffect(McpSchema.ElicitRequestFormParams)

/** Asks the client while the call waits, by the protocols before 2026-07-28. */
const elicit = Effect.fnUntraced(function* (request: Approval.Request) {
  const client = yield* Effect.serviceOption(McpSchema.McpServerClient)
  if (Option.isNone(client)) return Approval.reject(request, "the client can't be asked")
  const elicitation = Effect.gen(function* () {
    const reverse = yield* client.value.getClient
    return yield* reverse.elicit(yield* Effect.orDie(decodeForm({ mode: "form", ...Form.make(request) })))
  })
  const answered = yield* Effect.scoped(Effect.option(Effect.map(elicitation, (reply): Form.ClientAnswer => reply)))
  return Option.match(answered, {
    onNone: () => Approval.reject(request, "the client did not ask its user"),
    onSome: (reply) => Form.decisionOf(request, reply)
  })
})

/** Makes the table of open runs. They end with the scope. */
export const make = Effect.gen(function* () {
  const seals = yield* Seal.make
  const server = yield* McpServer
  const scope = yield* Effect.scope
  const lives = new Map<string, Live>()

  const begin = Effect.fnUntraced(function* (work: (line: Line) => Effect.Effect<McpSchema.CallToolResult>) {
    const signals = yield* Queue.unbounded<Signal>()
    const id = makeId()
    const decide: Line["decide"] = Effect.fnUntraced(function* (request) {
      const answer = yield* Deferred.make<Approval.Decision>()
      yield* Queue.offer(signals, { _tag: "Ask", ask: { id: makeId(), request, answer } })
      const timeoutRejection = Approval.reject(request, "nobody answered in time")
      return yield* Effect.timeoutOrElse(Deferred.await(answer), {
        duration: patience,
        orElse: () => Effect.as(Deferred.succeed(answer, timeoutRejection), timeoutRejection)
      })
    })
    const tell: Line["tell"] = (event) =>
      Effect.sync(() => {
        const message = Queue.sizeUnsafe(signals) < mostNotes ? noteOf(event) : undefined
        if (message !== undefined) Queue.offerUnsafe(signals, { _tag: "Note", message })
      })
    const fiber = yield* work({ decide, tell }).pipe(
      Effect.catchDefect((defect) =>
        Effect.as(
          Effect.logError("A tool of an MCP server died", defect),
          failed("The tool failed inside; see the log.")
        )
      ),
      Effect.flatMap((result) => Queue.offer(signals, { _tag: "Done", result })),
      Effect.ensuring(Effect.sync(() => lives.delete(id))),
      Effect.asVoid,
      Effect.forkIn(scope)
    )
    const live: Live = { id, signals, fiber, asked: undefined }
    return live
  })

  const progress = (context: McpSchema.McpRequestContext["Service"]) => {
    const token = context.requestMetadata?.["progressToken"]
    let count = 0
    return (message: string): Effect.Effect<void> =>
      typeof token === "string" || typeof token === "number"
        ? Effect.ignore(
            server.notifications["notifications/progress"]({ progressToken: token, progress: ++count, message })
          )
        : Effect.void
  }

  /** Follows a run to its end, or to a question that another request answers. */
  const follow = Effect.fnUntraced(function* (live: Live, tool: string, args: JsonObject) {
    const context = yield* McpSchema.McpRequestContext
    const note = progress(context)
    const canAsk = context.clientCapabilities.elicitation !== undefined
    for (;;) {
      const signal = yield* Queue.take(live.signals)
      if (signal._tag === "Done") return signal.result
      if (signal._tag === "Note") {
        yield* note(signal.message)
        continue
      }
      const { answer, id, request } = signal.ask
      if (!canAsk) {
        yield* Deferred.succeed(answer, Approval.reject(request, "the client has no way to ask its user"))
      } else if (!isStateless(context.protocolVersion)) {
        // If the client never answers, the run stops waiting first.
        yield* Deferred.succeed(answer, yield* Effect.raceFirst(elicit(request), Deferred.await(answer)))
      } else if (lives.size >= mostWaiting && !lives.has(live.id)) {
        yield* Deferred.succeed(answer, Approval.reject(request, "too many calls wait for a person"))
      } else {
        lives.set(live.id, live)
        live.asked = signal.ask
        const until = (yield* Clock.currentTimeMillis) + patience
        const requestState = yield* seals.seal({ run: live.id, ask: id }, tool, args, until)
        const { message, requestedSchema } = Form.make(request)
        return new McpSchema.InputRequired({
          inputRequests: { [id]: { method: "elicitation/create", params: { mode: "form", message, requestedSchema } } },
          requestState
        })
      }
    }
  })

  const invalid = new McpSchema.InvalidParams({
    message: "requestState is not of this call, was used already, or is too old; call the tool again without it"
  })

  /** Finds the run of a sealed state, and gives it the client's answer. */
  const resumeCall = Effect.fnUntraced(function* (sealed: string, tool: string, args: JsonObject) {
    const context = yield* McpSchema.McpRequestContext
    const state = yield* seals.open(sealed, tool, args)
    const live = state === undefined ? undefined : lives.get(state.run)
    const ask = live?.asked
    if (live === undefined || ask === undefined || ask.id !== state?.ask) return yield* invalid
    const reply = context.inputResponses?.[ask.id]
    // Without an answer, the question is asked again.
    if (reply === undefined || !("action" in reply)) {
      yield* Queue.offer(live.signals, { _tag: "Ask", ask })
      return live
    }
    live.asked = undefined
    yield* Deferred.succeed(ask.answer, Form.decisionOf(ask.request, reply))
    return live
  })

  /** Makes a call: begins a run, or resumes the run of `requestState`. Interrupting it interrupts the run. */
  return Effect.fnUntraced(function* (
    tool: string,
    args: JsonObject,
    work: (line: Line) => Effect.Effect<McpSchema.CallToolResult>
  ) {
    const { requestState } = yield* McpSchema.McpRequestContext
    const live = yield* requestState === undefined ? begin(work) : resumeCall(requestState, tool, args)
    return yield* Effect.onInterrupt(follow(live, tool, args), () => Fiber.interrupt(live.fiber))
  })
})
