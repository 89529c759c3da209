/** The answers and the updates of an agent of others, with the fields that are read. */
import type * as Acp from "@agentclientprotocol/sdk"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { optional, textUpTo } from "../decode.ts"

/** The answers to requests. */
export const answers = {
  initialize: Schema.Struct({
    protocolVersion: Schema.Finite,
    agentCapabilities: optional(
      Schema.Struct({
        loadSession: optional(Schema.Boolean),
        sessionCapabilities: optional(Schema.Struct({ resume: Schema.optionalKey(Schema.Unknown) }))
      })
    )
  }),
  "session/new": Schema.Struct({ sessionId: textUpTo(1_000) }),
  "session/load": Schema.Unknown,
  "session/resume": Schema.Unknown,
  "session/set_mode": Schema.Unknown,
  "session/prompt": Schema.Unknown
} as const

export type Answers = typeof answers

/** A block of content. Blocks of other kinds than text have only a type here. */
const Block = Schema.Union([
  Schema.Struct({ type: Schema.Literal("text"), text: Schema.String }),
  Schema.Struct({ type: Schema.String })
])
export type Block = typeof Block.Type

const CallContent = Schema.Union([
  Schema.Struct({ type: Schema.Literal("content"), content: Block }),
  Schema.Struct({ type: Schema.Literal("diff"), path: Schema.String }),
  Schema.Struct({ type: Schema.Literal("terminal") })
])
export type CallContent = typeof CallContent.Type

const Chunk = Schema.Struct({
  sessionUpdate: Schema.Literals(["agent_message_chunk", "agent_thought_chunk"]),
  content: Block
})

const Call = Schema.Struct({
  sessionUpdate: Schema.Literals(["tool_call", "tool_call_update"]),
  toolCallId: Schema.String,
  title: optional(Schema.String),
  name: optional(Schema.String),
  kind: optional(Schema.String),
  status: optional(Schema.String),
  rawInput: Schema.optionalKey(Schema.Unknown),
  content: optional(Schema.Array(CallContent))
})
export type Call = typeof Call.Type

const PlanEntry = Schema.Struct({ content: Schema.String, status: Schema.String })
export type PlanEntry = typeof PlanEntry.Type

const Plan = Schema.Struct({ sessionUpdate: Schema.Literal("plan"), entries: Schema.Array(PlanEntry) })

const Usage = Schema.Struct({
  sessionUpdate: Schema.Literal("usage_update"),
  used: Schema.Finite,
  cost: optional(Schema.Struct({ amount: Schema.Finite, currency: Schema.String }))
})
export type Usage = typeof Usage.Type

const Update = Schema.Union([Chunk, Call, Plan, Usage])
export type Update = typeof Update.Type

const Notification = Schema.Struct({ params: Schema.Struct({ update: Update }) })

const decodeNotification = Schema.decodeUnknownOption(Notification)

/** Reads the update of a notification. `undefined` for updates that nobody uses, or that violate the protocol. */
export const updateOf = (message: Acp.AnyMessage): Update | undefined =>
  Option.getOrUndefined(Option.map(decodeNotification(message), ({ params }) => params.update))
