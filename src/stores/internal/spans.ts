/** Makes spans of the events of a run. */
import * as Match from "effect/Match"
import { entriesToAttributes, type KeyValue } from "effect/observability/OtlpResource"
import type * as AgentEvent from "../../core/AgentEvent.ts"
import type { Usage } from "../../core/Usage.ts"

/** A span of OTLP. */
export interface Span {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string | undefined
  readonly name: string
  readonly kind: number
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly attributes: Array<KeyValue>
  readonly droppedAttributesCount: number
  readonly events: Array<{
    readonly name: string
    readonly timeUnixNano: string
    readonly attributes: Array<KeyValue>
    readonly droppedAttributesCount: number
  }>
  readonly droppedEventsCount: number
  readonly status: { readonly code: 0 | 1 | 2; message?: string }
  readonly links: Array<never>
  readonly droppedLinksCount: number
}

interface OpenSpan {
  readonly span: { -readonly [Key in keyof Span]: Span[Key] }
  isEnded: boolean
}

const [unset, ok, error] = [0, 1, 2] as const
const kinds = { internal: 1, client: 3 } as const

const nanos = (millis: number): string => `${BigInt(Math.max(0, Math.trunc(millis * 1000))) * 1000n}`

type Attributes = Record<string, unknown>

const usageOf = (usage: Usage): Attributes => ({
  "gen_ai.usage.input_tokens": usage.inputTokens,
  "gen_ai.usage.output_tokens": usage.outputTokens
})

/** Makes spans by the conventions of `Telemetry`, without contents. The same events give the same ids. */
export const make = (hash: string) => {
  const traceId = hash.slice(0, 32)
  const seed = BigInt(`0x${hash.slice(32, 48)}`)
  const spans: Array<OpenSpan> = []
  const runs = new Map<string, OpenSpan>()
  const chats = new Map<string, OpenSpan>()
  const tools = new Map<string, OpenSpan>()
  /** The calls that started sub-agents. */
  const parents = new Map<string, OpenSpan>()
  let last = 0

  const begin = (
    name: string,
    kind: keyof typeof kinds,
    at: number,
    parent: OpenSpan | undefined,
    attributes: Attributes
  ): OpenSpan => {
    const id = BigInt.asUintN(64, seed + BigInt(spans.length) + 1n)
    const open: OpenSpan = {
      isEnded: false,
      span: {
        traceId,
        // An id is not all zeros.
        spanId: (id === 0n ? seed : id).toString(16).padStart(16, "0"),
        parentSpanId: parent?.span.spanId,
        name,
        kind: kinds[kind],
        startTimeUnixNano: nanos(at),
        endTimeUnixNano: nanos(at),
        attributes: entriesToAttributes(Object.entries(attributes)),
        droppedAttributesCount: 0,
        events: [],
        droppedEventsCount: 0,
        status: { code: unset },
        links: [],
        droppedLinksCount: 0
      }
    }
    spans.push(open)
    return open
  }

  const end = (open: OpenSpan | undefined, at: number, status: Span["status"], attributes: Attributes = {}): void => {
    if (open === undefined || open.isEnded) return
    open.isEnded = true
    open.span.endTimeUnixNano = nanos(at)
    open.span.status = status
    open.span.attributes.push(...entriesToAttributes(Object.entries(attributes)))
  }

  const note = (open: OpenSpan | undefined, name: string, at: number, attributes: Attributes): void => {
    const keyValues = entriesToAttributes(Object.entries(attributes))
    open?.span.events.push({ name, timeUnixNano: nanos(at), attributes: keyValues, droppedAttributesCount: 0 })
  }

  const fail = (open: OpenSpan | undefined, at: number, type: string, attributes: Attributes = {}): void =>
    end(open, at, { code: error, message: type }, { "error.type": type, ...attributes })

  const callOf = ({ callId, runId }: { readonly callId: string; readonly runId: string }): string =>
    `${runId} ${callId}`

  const beginRun = (event: AgentEvent.Of<"RunStarted">): void => {
    const { agent, at, model, provider, runId, threadId } = event
    const open = begin(`invoke_agent ${agent}`, "internal", at, parents.get(runId), {
      "gen_ai.operation.name": "invoke_agent",
      "gen_ai.agent.name": agent,
      ...(provider === undefined ? {} : { "gen_ai.provider.name": provider }),
      ...(model === undefined ? {} : { "gen_ai.request.model": model }),
      ...(threadId === undefined ? {} : { "gen_ai.conversation.id": threadId })
    })
    runs.set(runId, open)
  }

  const endChat = ({ at, message, runId }: AgentEvent.Of<"MessageAppended">): void => {
    const chat = chats.get(runId)
    if (message.role !== "ai" || chat === undefined || chat.isEnded) return
    if (message.model !== undefined) chat.span.name = `chat ${message.model}`
    end(
      chat,
      at,
      { code: ok },
      {
        ...(message.model === undefined ? {} : { "gen_ai.response.model": message.model }),
        ...(message.usage === undefined ? {} : usageOf(message.usage))
      }
    )
  }

  const handle = Match.type<AgentEvent.AgentEvent>().pipe(
    Match.tags({
      RunStarted: beginRun,
      RoundStarted: ({ at, runId }) => {
        end(chats.get(runId), at, { code: unset })
        chats.set(runId, begin("chat", "client", at, runs.get(runId), { "gen_ai.operation.name": "chat" }))
      },
      MessageAppended: endChat,
      ToolCalled: (event) => {
        const open = begin(`execute_tool ${event.toolName}`, "internal", event.at, runs.get(event.runId), {
          "gen_ai.operation.name": "execute_tool",
          "gen_ai.tool.name": event.toolName,
          "gen_ai.tool.call.id": event.callId
        })
        tools.set(callOf(event), open)
      },
      ToolCompleted: (event) => end(tools.get(callOf(event)), event.at, { code: ok }),
      ToolFailed: (event) => fail(tools.get(callOf(event)), event.at, event.reason),
      SubagentStarted: (event) => {
        const call = tools.get(callOf(event))
        if (call !== undefined) parents.set(event.childRunId, call)
      },
      TurnRestarted: ({ at, reason, runId }) => note(chats.get(runId), "TurnRestarted", at, { reason }),
      Warning: ({ at, code, runId }) => note(runs.get(runId), "Warning", at, { code }),
      ApprovalRequested: ({ at, runId, toolName }) => note(runs.get(runId), "ApprovalRequested", at, { toolName }),
      Compacted: ({ at, runId }) => note(runs.get(runId), "Compacted", at, {}),
      RunCompleted: ({ at, runId, stopReason, usage }) => {
        end(chats.get(runId), at, { code: ok })
        end(runs.get(runId), at, { code: ok }, { stop_reason: stopReason, ...usageOf(usage) })
      },
      RunFailed: ({ at, error, runId, usage }) => {
        fail(chats.get(runId), at, error.tag)
        fail(runs.get(runId), at, error.tag, usageOf(usage))
      },
      RunInterrupted: ({ at, runId, usage }) => {
        end(chats.get(runId), at, { code: unset }, { "error.type": "interrupted" })
        end(runs.get(runId), at, { code: unset }, { "error.type": "interrupted", ...usageOf(usage) })
      }
    }),
    Match.orElse(() => undefined)
  )

  const add = (event: AgentEvent.AgentEvent): void => {
    last = Math.max(last, event.at)
    handle(event)
  }

  /** Gives all spans. Open ones, whose process crashed, end with the last event. */
  const finish = (): ReadonlyArray<Span> => {
    for (const open of spans) fail(open, last, "unfinished")
    return spans.map(({ span }) => span)
  }

  return { add, finish }
}
