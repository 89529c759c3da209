/** Answers of a run to the questions, requests and words of a server in the middle of a call. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { ChatModel } from "../../core/ChatModel.ts"
import { toText } from "../../core/Content.ts"
import { fromUnknown, isObject, type JsonObject } from "../../core/Json.ts"
import type { ModelError } from "../../core/ModelError.ts"
import * as Question from "../../core/Question.ts"
import * as Tool from "../../core/Tool.ts"
import { ToolContext } from "../../core/ToolContext.ts"
import type { ToolError } from "../../core/ToolError.ts"
import { valueAt } from "../../support/json/valueAt.ts"
import { cut } from "../../support/text/text.ts"
import { oneLine, quote } from "../../support/text/untrusted.ts"
import type { CallOptions, Reply, SampleRequest } from "./model.ts"

const longest = 4_000

/** A text of a server, so that nobody takes it for one of ours. */
const quoted = (text: string): string => quote(cut(text, longest))

/** A question for values by a JSON Schema: they are checked as the arguments of a tool are. */
const formOf = (server: string, message: string, schema: JsonObject): Question.Question<JsonObject> => {
  const form = Tool.dynamic("form", { description: "", parameters: schema, execute: () => Effect.succeed("") })
  return {
    text: `The MCP server "${server}" asks:\n${quoted(message)}`,
    details: { server },
    jsonSchema: schema,
    decode: (json) => {
      if (form.problem !== undefined) return Effect.fail(form.problem)
      if (!isObject(json)) return Effect.fail("the answer must be an object with the values by their names")
      const prepared = form.prepare(json)
      return (Result.isResult(prepared) ? Effect.fromResult(prepared) : prepared).pipe(
        Effect.mapBoth({ onFailure: ({ message: problem }) => problem, onSuccess: (call) => call.arguments })
      )
    }
  }
}

const declined: Reply = { action: "decline" }

/** A person who opens an address must see its owner. */
const visitOf = (server: string, message: string, url: URL): Question.Question<boolean> =>
  Question.confirm(
    `The MCP server "${server}" asks you to open a page of ${url.origin} in a browser:\n${quoted(message)}`,
    {
      server,
      origin: url.origin,
      url: cut(url.href, longest)
    }
  )

const sampleQuestion = (server: string, { messages, systemPrompt }: SampleRequest) =>
  Question.approval(`The MCP server "${server}" asks for an answer of the model, at your cost`, {
    server,
    systemPrompt: cut(systemPrompt, longest),
    messages: messages.map(({ content, role }) => ({
      role,
      text: cut(typeof content === "string" ? content : toText(content), longest)
    }))
  })

/** The reason of the model's end, in the words of the protocol. */
const stops: { readonly [reason: string]: string } = { length: "maxTokens", stop: "endTurn" }

type Failure = ToolError | ModelError

/** Makes the handlers of a call in a run, in the context of the tool. */
export const handlers = (
  server: string,
  sampling: "ask" | "allow" | undefined
): Effect.Effect<CallOptions<Failure, ChatModel>, never, ToolContext> =>
  Effect.map(ToolContext, ({ ask, emit, run, runId }): CallOptions<Failure, ChatModel> => {
    /** A question that nobody answers is declined: that does not end the call. */
    const asking = <A>(question: Question.Question<A>, reply: (answer: A) => Reply): Effect.Effect<Reply, Failure> =>
      Effect.catch(Effect.map(ask(question), reply), (error) =>
        error.reason === "Rejected" ? Effect.succeed(declined) : Effect.fail(error)
      )
    return {
      owner: runId,
      onQuestion: ({ message, schema, url }) => {
        if (url === undefined) {
          return asking(formOf(server, message, schema ?? {}), (content) => ({ action: "accept", content }))
        }
        const target = URL.parse(url)
        return target === null || !/^https?:$/u.test(target.protocol)
          ? Effect.succeed(declined)
          : asking(visitOf(server, message, target), (isOpened) => (isOpened ? { action: "accept" } : declined))
      },
      onSample:
        sampling === undefined
          ? undefined
          : (request) =>
              Effect.gen(function* () {
                if (sampling === "ask") yield* ask(sampleQuestion(server, request))
                const { messages, systemPrompt } = request
                const answer = yield* run.call({ messages, systemPrompt, purpose: "mcp-sampling", isForeign: true })
                return {
                  text: toText(answer.content),
                  model: answer.model ?? run.model?.modelId ?? "unknown",
                  stopReason: valueAt(stops, answer.stopReason) ?? answer.stopReason
                }
              }),
      onProgress: ({ message, progress, total }) =>
        emit(fromUnknown({ progress, total, message: message === undefined ? undefined : cut(oneLine(message), 500) })),
      onLog: ({ data, level, logger }) => {
        const text = typeof data === "string" ? data : JSON.stringify(data)
        return run.custom("mcp-log", fromUnknown({ server, level, logger, text: cut(oneLine(text), 2_000) }))
      }
    }
  })
