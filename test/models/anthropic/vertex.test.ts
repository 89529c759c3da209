import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Redacted, Stream } from "effect"
import { ChatModel, Content, Message } from "effect-deepagents"
import * as AnthropicChatModel from "effect-deepagents/models/AnthropicChatModel"
import { describe } from "vitest"
import { answer, error, json, type Recorded, say, serve, serveBy, stream } from "../servers/anthropic.ts"
import { bodyViolations } from "../servers/anthropicRules.ts"
import { claude, askToEnd, failure, request, tool } from "./asking.ts"

const token = "ya29.canary-token-0123456789"

const path = /^\/projects\/my-project\/locations\/([a-z0-9-]+)\/publishers\/anthropic\/models\/([^/:]+):(\w+)$/

/** The rules of Vertex AI beyond those of Anthropic. */
const violations = ({ body, headers, url }: Recorded): ReadonlyArray<string> => {
  const model = path.exec(url)?.[2]
  return [
    ...(model === undefined ? [`no such path: ${url}`] : []),
    ...("model" in body && model !== "count-tokens" ? ["model: Extra inputs are not permitted"] : []),
    ...(body.anthropic_version === "vertex-2023-10-16" ? [] : ["anthropic_version: Field required"]),
    ...(headers["authorization"] === `Bearer ${token}` ? [] : ["Request had invalid authentication credentials."]),
    ...(headers["x-api-key"] === undefined ? [] : ["x-api-key"]),
    ...(model === "count-tokens" ? [] : bodyViolations({ ...body, anthropic_version: undefined }, false))
  ]
}

const vertexServer = serveBy(violations)

const vertex = (location?: string) => ({
  project: "my-project",
  location,
  accessToken: Effect.succeed(Redacted.make(token))
})

describe("Claude on Vertex AI", () => {
  const at = (url: string, options: Partial<AnthropicChatModel.Options> = {}) =>
    AnthropicChatModel.layer({ model: "claude-sonnet-4-5@20250929", vertex: vertex(), baseURL: url, ...options })

  it.live("is asked with a token for each request, at the path of its model, and goes on with its thoughts", () =>
    Effect.gen(function* () {
      const first = answer([
        { thinking: "hm", signature: "sig" },
        { call: "search", id: "toolu_1", input: { of: "x" } }
      ])
      const server = yield* vertexServer(stream(first), say("ok"))
      const layer = at(server.url, { thinking: "low" })
      const asked = request({ tools: [tool("search")] })
      const said = yield* askToEnd(layer, asked)
      const result = Message.tool("found", { toolCallId: "toolu_1", toolName: "search" })
      yield* askToEnd(layer, { ...asked, messages: [...asked.messages, said, result] })
      expect(server.requests.map(({ url }) => path.exec(url)?.slice(1))).toEqual(
        Array.from({ length: 2 }, () => ["global", "claude-sonnet-4-5%4020250929", "streamRawPredict"])
      )
      expect(server.requests[1]?.body.messages[1].content[0]).toMatchObject({ type: "thinking", signature: "sig" })
    })
  )

  it.live("has no remote pictures, knows its model and the costs of a region", () =>
    Effect.gen(function* () {
      const server = yield* vertexServer(say("ok"))
      const messages = [Message.human([Content.image({ url: "https://example.com/a.png" })])]
      yield* askToEnd(at(server.url), request({ messages }))
      expect(server.requests[0]?.body.messages[0].content[0].type).toBe("text")
      const knownFacts = (location?: string) =>
        Effect.provide(ChatModel.ChatModel, at(server.url, { vertex: vertex(location) }))
      expect(yield* knownFacts()).toMatchObject({
        provider: "vertex",
        contextWindowTokens: 200_000,
        prices: { input: 3 }
      })
      expect((yield* knownFacts("europe-west1")).prices?.input).toBeCloseTo(3.3)
    })
  )

  it.live("warns before its token is there, and hides the token from then on", () =>
    Effect.gen(function* () {
      const server = yield* vertexServer(error(403, "permission_error", `no: ${token}`))
      const gate = yield* Deferred.make<void>()
      const accessToken = Effect.as(Deferred.await(gate), Redacted.make(token))
      const layer = at(server.url, { vertex: { ...vertex(), accessToken } })
      const messages = [Message.human([Content.image({ base64: "none!", mimeType: "image/png" })])]
      const session = yield* Effect.provide(Effect.flatMap(ChatModel.ChatModel, ChatModel.open), layer)
      const tags: Array<string> = []
      const failed = yield* Effect.flip(
        Stream.runForEach(session.nextTurn(request({ messages })), ({ _tag }) => {
          tags.push(_tag)
          return Deferred.succeed(gate, undefined)
        })
      )
      expect(tags).toEqual(["Warning"])
      expect(JSON.stringify(failed)).not.toContain(token)
    })
  )

  it.live.each([
    [undefined, "https://aiplatform.googleapis.com/v1/"],
    ["us", "https://aiplatform.us.rep.googleapis.com/v1/"],
    ["europe-west1", "https://europe-west1-aiplatform.googleapis.com/v1/"]
  ])("of %s is at %s", ([location, root]) =>
    Effect.gen(function* () {
      const urls: Array<string> = []
      const fetch: typeof globalThis.fetch = (input) => {
        urls.push(new Request(input).url)
        return Promise.resolve(new Response("{}", { status: 500 }))
      }
      yield* failure(AnthropicChatModel.layer({ model: "claude-opus-5-5", vertex: vertex(location), fetch }))
      expect(urls[0]?.startsWith(`${root}projects/my-project/`)).toBe(true)
    })
  )

  it.live("counts tokens there, and keeps the token out of errors", () =>
    Effect.gen(function* () {
      const server = yield* vertexServer(
        json(200, { input_tokens: 12 }),
        error(403, "permission_error", `no: ${token}`)
      )
      const options = { model: "claude-opus-5-5", vertex: vertex(), baseURL: server.url }
      expect(yield* AnthropicChatModel.countTokens(options, request())).toBe(12)
      const failed = yield* failure(AnthropicChatModel.layer(options))
      expect(failed.reason._tag).toBe("Permission")
      expect(JSON.stringify(failed)).not.toContain(token)
      const misspelt: object = { ...options, maxToken: 3 }
      const unknown = yield* Effect.flip(
        AnthropicChatModel.countTokens(misspelt as AnthropicChatModel.Options, request())
      )
      expect(unknown.message).toContain('There is no option "maxToken"')
      const none = yield* Effect.flip(AnthropicChatModel.countTokens(null as never, request()))
      expect(none.message).toContain("are null")
    })
  )
})

it.live("warns of unreadable parts once a session", () =>
  Effect.gen(function* () {
    const server = yield* serve(say("ok"))
    const model = yield* Effect.provide(ChatModel.ChatModel, claude(server))
    const asked = request({ messages: [Message.human([Content.image({ base64: "none!", mimeType: "image/png" })])] })
    for (const session of [yield* ChatModel.open(model), yield* ChatModel.open(model)]) {
      const warnings: Array<number> = []
      for (let turn = 0; turn < 2; turn++) {
        const parts = yield* Stream.runCollect(session.nextTurn(asked))
        warnings.push(parts.filter(({ _tag }) => _tag === "Warning").length)
      }
      expect(warnings).toEqual([1, 0])
    }
  })
)

describe("calls of Claude", () => {
  const asked = request({ tools: [tool("search")] })

  it.live("come one at a time, by an option or for one request", () =>
    Effect.gen(function* () {
      const server = yield* serve(say("ok"))
      const one = claude(server, { model: "claude-opus-4-6", parallelToolCalls: false })
      yield* askToEnd(one, asked)
      yield* askToEnd(one, { ...asked, toolChoice: "required" })
      yield* askToEnd(one, { ...asked, toolChoice: "none" })
      yield* askToEnd(one, request())
      yield* askToEnd(one, { ...asked, parameters: { parallelToolCalls: true } })
      yield* askToEnd(claude(server), { ...asked, parameters: { parallelToolCalls: false } })
      expect(server.requests.map(({ body }) => body.tool_choice)).toEqual([
        { type: "auto", disable_parallel_tool_use: true },
        { type: "any", disable_parallel_tool_use: true },
        { type: "none" },
        undefined,
        undefined,
        { type: "auto", disable_parallel_tool_use: true }
      ])
    })
  )

  it.live("are held to the schemas of tools, where model and schema can be", () =>
    Effect.gen(function* () {
      const server = yield* serve(say("ok"))
      const open = { ...tool("any"), parameters: { type: "object", additionalProperties: true } }
      const both = request({ tools: [tool("search"), open] })
      yield* askToEnd(claude(server, { strictTools: true }), both)
      yield* askToEnd(claude(server, { strictTools: true, model: "claude-opus-4-1" }), both)
      const [now, before] = server.requests.map(({ body }) => body.tools)
      expect(now.map(({ strict }: { strict?: boolean }) => strict)).toEqual([true, undefined])
      expect(now[0].input_schema).toMatchObject({ additionalProperties: false, properties: { of: { type: "string" } } })
      expect(before.map(({ strict }: { strict?: boolean }) => strict)).toEqual([undefined, undefined])
    })
  )
})
