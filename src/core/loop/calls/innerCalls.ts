/** Makes the calls of a running tool to other tools. A stored record answers a call that was done before. */
import * as Effect from "effect/Effect"
import type { AgentError } from "../../AgentError.ts"
import type { JsonObject } from "../../Json.ts"
import { canonical } from "../../schema/jsonTree.ts"
import { type CitedSource, union } from "../../sourceList.ts"
import { fromStored, toStored } from "../../thread/storedOutput.ts"
import type { Tool } from "../../Tool.ts"
import { ToolError } from "../../ToolError.ts"
import type { ToolOutput } from "../../ToolOutput.ts"
import type { Attempt, Live, OpenCall } from "../live.ts"
import { park } from "../records/attempts.ts"
import * as Inside from "../records/inside.ts"
import { save } from "../records/journal.ts"
import type { DoneOf } from "../records/records.ts"
import { register } from "../sources.ts"
import { resolveName } from "../toolset.ts"
import { countWork } from "../work.ts"
import { type Call, resolve } from "./calls.ts"
import { judge } from "./gate.ts"
import { isRepeatable, unknownInnerOutcome } from "./gatekeepers.ts"
import { gatherRulings } from "./gather.ts"
import { isAsShown, notAsShown, takeGrant } from "./rehearse.ts"

type CallRecord = DoneOf<"Call">

type Status = CallRecord["status"]

type Execute = (live: Live, call: Call) => Effect.Effect<void, unknown, unknown>

/** A call of a running tool, with its place in the records and its record from an earlier run. */
interface InnerCall {
  readonly attempt: Attempt
  readonly call: Call
  /** `undefined` where records are of no use. */
  readonly place: string | undefined
  readonly arguments: JsonObject
  readonly saved: CallRecord | undefined
}

/** The trace that an earlier run left of a call, by the status of its record. */
const traces: { readonly [S in Status]: Call["trace"] } = {
  asked: undefined,
  begun: "unknown",
  waiting: "waiting",
  done: undefined
}

/** Calls another tool of the run, through the same gates and middleware as a call of the model. */
export const callTool = Effect.fnUntraced(function* (
  attempt: Attempt,
  target: string | Tool<unknown>,
  args: JsonObject,
  execute: Execute
) {
  const { live } = attempt
  const requestedName = typeof target === "string" ? target : target.name
  const name = resolveName(live.turn.toolset, requestedName) ?? requestedName
  const place = Inside.isKept(live) ? Inside.claim(attempt, "call", name, args) : undefined
  const granted = takeGrant(attempt, name, args)
  const saved = yield* findRecord(attempt, place, args)
  if (saved?.outcome !== undefined) {
    if (saved.outcome._tag === "Failed") return yield* saved.outcome.error
    creditSources(attempt.call, saved.outcome.sources)
    return fromStored(saved.outcome)
  }
  const call = yield* resolve(
    live,
    { id: saved?.id ?? Inside.freshId(attempt), name, arguments: args },
    {
      outer: attempt.call,
      settled: new Set(saved?.settled),
      trace: saved === undefined ? undefined : traces[saved.status]
    }
  )
  call.granted = granted
  const inner: InnerCall = { attempt, call, place, arguments: args, saved }
  yield* checkTool(inner, target)
  yield* passGates(inner)
  yield* execute(live, call)
  if (call.suspended !== undefined) {
    yield* saveCall(inner, "waiting")
    return yield* park(attempt, call.suspended)
  }
  yield* registerSources(inner)
  yield* saveCall(inner, "done")
  return yield* outputOf(call)
})

const findRecord = Effect.fnUntraced(function* (attempt: Attempt, place: string | undefined, args: JsonObject) {
  if (place === undefined) return undefined
  const record = yield* Effect.fromResult(Inside.find(attempt, place, "Call"))
  // The digest in a place is a key, and no proof.
  return record !== undefined && canonical(record.arguments) === canonical(args) ? record : undefined
})

/** Checks that the tool is still offered, and is the tool that the caller means. */
const checkTool = Effect.fnUntraced(function* ({ attempt, call }: InnerCall, target: string | Tool<unknown>) {
  const { name, tool } = call
  if (tool === undefined && call.trace !== undefined) {
    call.outcome = { error: unknownInnerOutcome(name) }
    yield* attempt.live.run.warn(
      "tool-gone",
      `The tool "${name}" is not offered any more. An earlier run began a call of it, and its outcome is not known.`
    )
  }
  if (typeof target !== "string" && tool !== undefined && tool !== target) {
    return yield* new ToolError({
      reason: "UnknownTool",
      message: `"${name}" is not the tool of this name that the run has; give the agent the one that is called.`
    })
  }
})

/** Asks the gates about a call. Parks the call until pending requests are decided. */
const passGates = Effect.fnUntraced(function* (inner: InnerCall) {
  const { attempt, call, saved } = inner
  if (call.outcome !== undefined) return
  const { pending, settled } = yield* judge(attempt.live, [call], gatherRulings(attempt))
  if (pending.length > 0) {
    yield* saveCall(inner, call.trace === "unknown" ? "begun" : "asked")
    return yield* park(attempt, pending)
  }
  if (call.outcome !== undefined) return
  if (!isAsShown(call)) {
    call.outcome = { error: notAsShown }
    return
  }
  if (call.trace === undefined) countWork(attempt.live, "toolCalls", 1)
  // A decision on a call that must not be repeated is used up.
  const isUsedUp = call.tool !== undefined && !isRepeatable(call.tool)
  yield* saveCall(inner, "begun", [...(saved?.settled ?? []), ...(isUsedUp ? settled.map(({ id }) => id) : [])])
})

/** Keeps the record of a call. A call that waits is stored with the suspension, so only other calls are stored now. */
const saveCall = (
  { arguments: args, attempt, call, place, saved }: InnerCall,
  status: Status,
  settled: ReadonlyArray<string> = saved?.settled ?? []
): Effect.Effect<void, AgentError> =>
  Effect.suspend(() => {
    const { id, outcome } = call
    // Every run keeps steps inside a call, since a tool may be tried again.
    if (status === "done") Inside.forget(attempt.live, id)
    if (place === undefined) return Effect.void
    const end = status === "done" && outcome !== undefined ? { outcome: toRecord(outcome) } : {}
    Inside.keep(attempt, place, { _tag: "Call", id, arguments: args, status, settled, ...end })
    return status === "begun" || status === "done" ? save(attempt.live) : Effect.void
  })

const toRecord = (outcome: NonNullable<Call["outcome"]>): NonNullable<CallRecord["outcome"]> =>
  "error" in outcome ? { _tag: "Failed", error: outcome.error } : toStored(outcome.output)

/** Registers the sources of a call before the calling tool sees the output, and credits them to that tool. */
const registerSources = Effect.fnUntraced(function* ({ attempt, call }: InnerCall) {
  const { outcome } = call
  if (outcome !== undefined && "output" in outcome && outcome.output.sources !== undefined) {
    yield* register(attempt.live, outcome.output.sources, call.id)
    creditSources(attempt.call, outcome.output.sources)
  }
  creditSources(attempt.call, call.innerSources)
})

const creditSources = (outer: OpenCall, sources: ReadonlyArray<CitedSource> = []): void => {
  if (sources.length > 0) outer.innerSources = union(outer.innerSources ?? [], sources)
}

const outputOf = ({ outcome }: Call): Effect.Effect<ToolOutput, ToolError> =>
  outcome === undefined
    ? Effect.die(new Error("A call ended without an outcome."))
    : "error" in outcome
      ? Effect.fail(outcome.error)
      : Effect.succeed(outcome.output)
