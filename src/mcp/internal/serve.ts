/** Answers the requests of a server during a call. */
import type { CreateMessageRequest } from "@modelcontextprotocol/client"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { fromUnknown, isObject } from "../../core/Json.ts"
import type { Message } from "../../core/Message.ts"
import { defined } from "../../support/json/defined.ts"
import { blockOf, messagesOf } from "./catalog/results.ts"
import type { ServerQuestion, CallOptions, LogLine, Progress, Reply, SamplingAnswer, SampleRequest } from "./model.ts"
import type { Inbound } from "./wire/call.ts"

const declined: Reply = { action: "decline" }

const noModel = "this client answers with no model"

const givenUp = "that was refused, or the call was given up"

/** Passes on the outcome of an effect, so that nobody waits forever. */
const settle =
  <A, B>(answer: Deferred.Deferred<B, string>, map: (value: A) => B) =>
  <E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<void, E, R> =>
    Effect.asVoid(
      Effect.onExit(work, (exit) =>
        Exit.isSuccess(exit) ? Deferred.succeed(answer, map(exit.value)) : Deferred.fail(answer, givenUp)
      )
    )

type Values = { [name: string]: string | number | boolean | Array<string> }

/** The values of a form: the protocol has no others. */
const valuesOf = ({ content = {} }: Reply): Values => {
  const values: Values = {}
  for (const [name, value] of Object.entries(content)) {
    if (typeof value === "string" || typeof value === "number" || typeof value === "boolean") values[name] = value
    else if (Array.isArray(value)) values[name] = value.map(String)
  }
  return values
}

const askedOf = (params: Extract<Inbound, { readonly _tag: "Elicit" }>["params"]): ServerQuestion => {
  if (params.mode === "url") return { message: params.message, url: params.url }
  const schema = fromUnknown(params.requestedSchema)
  return { message: params.message, schema: isObject(schema) ? schema : {} }
}

/** The conversation of a request, as far as a model can be shown it. */
const conversationOf = ({ messages }: CreateMessageRequest["params"]): ReadonlyArray<Message> =>
  messagesOf(
    messages.map(({ content, role }) => ({
      role,
      content: (Array.isArray(content) ? content : [content]).flatMap((block) =>
        block.type === "text" || block.type === "image" || block.type === "audio" ? [blockOf(block)] : []
      )
    }))
  )

const sampleOf = (params: CreateMessageRequest["params"]): SampleRequest => ({
  messages: conversationOf(params),
  systemPrompt: params.systemPrompt ?? "",
  maxTokens: params.maxTokens,
  ...defined({ temperature: params.temperature, stopSequences: params.stopSequences })
})

/** Makes the handler of a call's messages from the caller's handlers. */
export const serving =
  <E, R>({ onLog, onProgress, onQuestion, onSample }: CallOptions<E, R>) =>
  (inbound: Inbound): Effect.Effect<void, E, R> => {
    switch (inbound._tag) {
      case "Elicit": {
        const { answer, params } = inbound
        const reply: Effect.Effect<Reply, E, R> = onQuestion?.(askedOf(params)) ?? Effect.succeed(declined)
        return settle(answer, (formAnswer: Reply) =>
          formAnswer.action === "accept" && params.mode !== "url"
            ? { action: formAnswer.action, content: valuesOf(formAnswer) }
            : { action: formAnswer.action }
        )(reply)
      }
      case "Sample": {
        const { answer, params } = inbound
        if (onSample === undefined) return Effect.asVoid(Deferred.fail(answer, noModel))
        const sampling = settle(answer, ({ model, stopReason, text }: SamplingAnswer) => ({
          role: "assistant" as const,
          content: { type: "text" as const, text },
          model,
          stopReason
        }))(onSample(sampleOf(params)))
        // The server is told, and goes on with the call as it likes.
        return Effect.catch(sampling, () => Effect.void)
      }
      case "Progress": {
        const { message, progress, total } = inbound.progress
        const update: Progress = { progress, ...defined({ message, total }) }
        return onProgress?.(update) ?? Effect.void
      }
      case "Log": {
        const { data, level, logger } = inbound
        const logged: LogLine = { level, data: fromUnknown(data), ...defined({ logger }) }
        return onLog?.(logged) ?? Effect.void
      }
    }
  }
