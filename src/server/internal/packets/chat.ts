/** Writes chat completions, in chunks and whole. */
import type { AgentEvent, Of } from "../../../core/AgentEvent.ts"
import type { JsonObject } from "../../../core/Json.ts"
import type { Usage } from "../../../core/Usage.ts"
import { byTag, type Handlers, problemOf } from "./part.ts"
import type { Take } from "./parts.ts"

type Out = (packet: JsonObject) => void
type End = Of<"RunCompleted" | "RunFailed" | "RunInterrupted">

export const secondsOf = ({ at }: AgentEvent): number => Math.floor(at / 1_000)

const noteOf = (requests: ReadonlyMap<string, string>): string =>
  [
    "The agent waits for a decision, which this client can't make:",
    ...Array.from(requests.values(), (description) => `- ${description}`)
  ].join("\n")

const finishOf = (event: End): string =>
  event._tag !== "RunCompleted"
    ? "stop"
    : event.stopReason === "length"
      ? "length"
      : event.stopReason === "refused"
        ? "content_filter"
        : "stop"

const chatUsage = ({ cacheReadTokens, inputTokens, outputTokens, reasoningTokens }: Usage): JsonObject => ({
  prompt_tokens: inputTokens,
  completion_tokens: outputTokens,
  total_tokens: inputTokens + outputTokens,
  prompt_tokens_details: { cached_tokens: cacheReadTokens },
  completion_tokens_details: { reasoning_tokens: reasoningTokens }
})

const errorOf = (event: Of<"RunFailed">): JsonObject => ({
  error: { message: problemOf(event), type: "server_error", code: event.error.tag, param: null }
})

const isWaiting = (event: End): boolean => event._tag === "RunCompleted" && event.stopReason === "suspended"

/** A completion: its id, the name of its agent, and whether its last chunk has the usage. */
interface Completion {
  readonly id: string
  readonly model: string
  readonly includeUsage?: boolean | undefined
}

/** Makes the chunks of a completion. Deltas can't be taken back: the words of a void turn stay. */
export const takeChat = (options: Completion) => (): Take<JsonObject> => {
  const { id, includeUsage = false, model } = options
  let hasText = false
  const requests = new Map<string, string>()
  const head = (event: AgentEvent) => ({ id, object: "chat.completion.chunk", created: secondsOf(event), model })
  const tell = (event: AgentEvent, delta: JsonObject, finish: string | null, out: Out): void =>
    out({ ...head(event), choices: [{ index: 0, delta, finish_reason: finish, logprobs: null }] })
  const separate = (event: AgentEvent, out: Out): void => {
    if (hasText) tell(event, { content: "\n\n" }, null, out)
    hasText = true
  }
  const handlers: Handlers<JsonObject> = {
    Begin: (_, out, event) => tell(event, { role: "assistant", content: "" }, null, out),
    TextStart: (_, out, event) => separate(event, out),
    TextDelta: ({ text: content }, out, event) => tell(event, { content }, null, out),
    Asked: ({ replaces, request: { description, id: request } }) => {
      if (replaces !== undefined) requests.delete(replaces)
      requests.set(request, description)
    },
    Decided: ({ event }) => void requests.delete(event.id),
    End: ({ event }, out) => {
      if (event._tag === "RunFailed") {
        return out(errorOf(event))
      }
      if (isWaiting(event)) {
        separate(event, out)
        tell(event, { content: noteOf(requests) }, null, out)
      }
      tell(event, {}, finishOf(event), out)
      if (includeUsage) out({ ...head(event), choices: [], usage: chatUsage(event.usage) })
    }
  }
  return byTag(handlers)
}

/** Makes one packet: the whole completion, without the words of void turns, or the error of a failed run. */
export const takeWholeChat =
  ({ id, model }: Omit<Completion, "includeUsage">) =>
  (): Take<JsonObject> => {
    const texts: Array<string> = []
    let [complete, created] = [0, 0]
    const requests = new Map<string, string>()
    const handlers: Handlers<JsonObject> = {
      Begin: (_, __, event) => {
        created = secondsOf(event)
      },
      TextStart: () => void texts.push(""),
      TextDelta: ({ text }) => void texts.push(`${texts.pop() ?? ""}${text}`),
      Turn: () => {
        complete = texts.length
      },
      Void: () => {
        texts.length = complete
      },
      Asked: ({ replaces, request: { description, id: request } }) => {
        if (replaces !== undefined) requests.delete(replaces)
        requests.set(request, description)
      },
      Decided: ({ event }) => void requests.delete(event.id),
      End: ({ event }, out) => {
        if (event._tag === "RunFailed") return out(errorOf(event))
        if (isWaiting(event)) texts.push(noteOf(requests))
        const message = { role: "assistant", content: texts.join("\n\n"), refusal: null }
        out({
          id,
          object: "chat.completion",
          created,
          model,
          choices: [{ index: 0, message, finish_reason: finishOf(event), logprobs: null }],
          usage: chatUsage(event.usage)
        })
      }
    }
    return byTag(handlers)
  }
