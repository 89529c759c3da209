/** The parts of a response, which all protocols tell. They are the same from live events and from the store. */
import type { AgentEvent, Of } from "../../../core/AgentEvent.ts"
import type { Json, JsonObject } from "../../../core/Json.ts"
import type { AiMessage, HumanMessage } from "../../../core/Message.ts"
import type { StopReason } from "../../../core/StopReason.ts"
import type { Usage } from "../../../core/Usage.ts"

/** A sub-agent. A resumed one keeps its `id`. `usage` is known when it is done. */
export interface Subagent {
  readonly id: string
  readonly agent: string
  readonly callId: string
  /** The names of the agents from the root to its own. */
  readonly path: ReadonlyArray<string>
  readonly status: "working" | "waiting" | "failed" | "interrupted" | StopReason
  readonly usage?: Usage
}

type CitedSource = Of<"SourcesFound">["sources"][number]

/**
 * A part of a response.
 *
 * - `Step`, `StepEnd`: a turn of the model and its calls. `Void`: the pieces of the turn so far do not count
 * - `Text…`, `Reasoning…`, `Call…`: pieces, with the id of their part
 * - `Call`, `BadCall`: a call, when its turn is complete. `Turn`: the complete turn, behind them
 * - `Result`: the answer to a call; another one of the same call replaces it
 * - `Asked`, `Decided`: a request. `partId` is its call, or the request itself if the response does not have the call
 * - `Other`: an event that matters only while it happens
 */
export type Part =
  | { readonly _tag: "Begin" }
  | { readonly _tag: "Step" | "StepEnd" | "Void" }
  | { readonly _tag: "TextStart" | "TextEnd" | "ReasoningStart" | "ReasoningEnd"; readonly id: string }
  | { readonly _tag: "TextDelta" | "ReasoningDelta"; readonly id: string; readonly text: string }
  | { readonly _tag: "CallStart"; readonly id: string; readonly name: string; readonly messageId: string }
  | { readonly _tag: "CallDelta"; readonly id: string; readonly text: string }
  | {
      readonly _tag: "Call"
      readonly id: string
      readonly name: string
      readonly arguments: JsonObject
      /** The message of the call; empty for the open call of a program. */
      readonly messageId: string
    }
  | {
      readonly _tag: "BadCall"
      readonly id: string
      readonly messageId: string
      readonly name: string
      readonly raw: string
      readonly problem: string
    }
  | { readonly _tag: "Turn"; readonly message: AiMessage }
  | {
      readonly _tag: "Result"
      readonly id: string
      readonly name: string
      readonly text: string
      readonly outcome: "done" | "failed" | "denied"
    }
  | {
      readonly _tag: "Asked"
      readonly request: Of<"ApprovalRequested">
      /** The earlier request on the same call, which expired. */
      readonly replaces: string | undefined
      readonly partId: string
      readonly isOwn: boolean
    }
  | {
      readonly _tag: "Decided"
      readonly event: Of<"ApprovalResolved">
      readonly partId: string
      readonly isOwn: boolean
    }
  | { readonly _tag: "Subagent"; readonly subagent: Subagent }
  | { readonly _tag: "Sources"; readonly sources: ReadonlyArray<CitedSource> }
  | { readonly _tag: "File"; readonly url: string; readonly mediaType: string }
  | { readonly _tag: "Steered"; readonly message: HumanMessage }
  | { readonly _tag: "Todos"; readonly todos: Json }
  | { readonly _tag: "Other"; readonly event: Of<"ToolProgress" | "Warning" | "Custom" | "Compacted"> }
  | { readonly _tag: "End"; readonly event: Of<"RunCompleted" | "RunFailed" | "RunInterrupted"> }

/** Takes the next part. */
export type Tell = (part: Part) => void

/** The message of a failed run that its owner may read. A defect may name internals of the server. */
export const problemOf = ({ error }: Of<"RunFailed">): string =>
  error.tag === "Defect" || error.tag === "Unknown" ? "The run failed. The server's log says why." : error.message

/** Reports whether an event is of the outermost run. */
export const isOfRoot = ({ path }: AgentEvent): boolean => path.length <= 1

/** The packets of each part, by its tag. A part without an entry has no packet. */
export type Handlers<Packet> = {
  readonly [Tag in Part["_tag"]]?: (
    part: Part & { readonly _tag: Tag },
    out: (packet: Packet) => void,
    event: AgentEvent
  ) => void
}

/** Makes the packets of parts by a table. */
export const byTag =
  <Packet>(handlers: Handlers<Packet>) =>
  (part: Part, out: (packet: Packet) => void, event: AgentEvent): void => {
    // The key and the part have the same tag.
    const handle = handlers[part._tag] as
      | ((part: Part, out: (packet: Packet) => void, event: AgentEvent) => void)
      | undefined
    handle?.(part, out, event)
  }
