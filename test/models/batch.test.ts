/** Requests in batches of OpenAI and Anthropic: joined, priced at half, resumed after a crash, failed one by one. */
import { execFile } from "node:child_process"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Layer, Redacted, Scope, Stream } from "effect"
import { Agent, ChatModel, Message, ModelError } from "effect-deepagents"
import * as AnthropicChatModel from "effect-deepagents/models/AnthropicChatModel"
import * as OpenAiChatModel from "effect-deepagents/models/OpenAiChatModel"
import { KeyValueStore } from "effect/persistence"
import { bundle } from "../bundle.ts"
import { type Batches, serveAzure, serveClaude, serveOpenAi } from "./servers/batches.ts"

const apiKey = Redacted.make("sk-canary-batch-0123456789")

interface Quick {
  readonly fetch?: typeof globalThis.fetch
  readonly limit?: number
  readonly window?: number
}

const quick = { window: 30, interval: 20 }

const providers = {
  OpenAI: {
    serve: serveOpenAi,
    /** One million tokens each way, in a batch, at the rates of long requests. */
    cost: 2.5 + 11.25,
    plain: (fetch: typeof globalThis.fetch) =>
      OpenAiChatModel.layer({ model: "gpt-5.4", apiKey, fetch, baseURL: "http://127.0.0.1:1/v1" }),
    layer: ({ url }: Batches, options: Quick = {}) =>
      OpenAiChatModel.layerBatch({ model: "gpt-5.4", apiKey, baseURL: `${url}/v1`, ...quick, ...options })
  },
  Anthropic: {
    serve: serveClaude,
    cost: 2 + 10,
    plain: (fetch: typeof globalThis.fetch) => AnthropicChatModel.layer({ model: "claude-opus-5-5", apiKey, fetch }),
    layer: ({ url }: Batches, options: Quick = {}) =>
      AnthropicChatModel.layerBatch({ model: "claude-opus-5-5", apiKey, baseURL: url, ...quick, ...options })
  }
}

const request = (text: string): ChatModel.ModelRequest => ({
  messages: [Message.human(text)],
  systemPrompt: "You speak.",
  tools: [],
  toolChoice: "auto",
  parameters: {},
  cacheHints: [],
  purpose: "turn"
})

const ask = (text: string) =>
  Effect.scoped(
    Effect.gen(function* () {
      const session = yield* ChatModel.open(yield* ChatModel.ChatModel)
      const last = (yield* Stream.runCollect(session.nextTurn(request(text)))).at(-1)
      return last?._tag === "TurnDone" ? last.message : assert.fail("no turn")
    })
  )

const isBegin = (input: Parameters<typeof fetch>[0], method: string | undefined): boolean =>
  method?.toUpperCase() === "POST" &&
  new URL(input instanceof Request ? input.url : input).pathname.endsWith("/batches")

/** Requests whose first batch begins, and nobody learns its id. With `never`, the batch does not begin either. */
const cutBegin = (way: "answer" | "never"): typeof globalThis.fetch => {
  let isCut = false
  return async (input, init) => {
    const isFirst = !isCut && isBegin(input, init?.method)
    isCut ||= isFirst
    if (isFirst && way === "never") throw new TypeError("fetch failed")
    const response = await fetch(input, init)
    return isFirst ? Promise.reject(new TypeError("terminated")) : response
  }
}

const until = (isSo: () => boolean) =>
  Effect.gen(function* () {
    while (!isSo()) yield* Effect.sleep(5)
  })

describe.each(Object.entries(providers))("batches of %s", (_, { cost, layer, plain, serve }) => {
  it.live("join the requests of many runs, and each run gets its own answer at the batch's rates", () =>
    Effect.gen(function* () {
      const server = yield* serve
      server.failures.push(503, 429)
      const words = Array.from({ length: 40 }, (_, at) => `word${at}`)
      const agent = Agent.make({ name: "speaker", prompt: "You speak." })
      const results = yield* Effect.forEach(words, (word) => Agent.run(agent, `say ${word}`), {
        concurrency: "unbounded"
      }).pipe(Effect.provide(layer(server)))
      assert.deepStrictEqual(
        results.map(({ text }) => text),
        words.map((word) => word.toUpperCase())
      )
      assert.deepStrictEqual(
        server.batches.map(({ lines }) => lines.length),
        [40]
      )
      for (const { usage } of results) assert.closeTo(usage.cost ?? 0, cost, 1e-9)
    }).pipe(Effect.provide(KeyValueStore.layerMemory))
  )

  it.live("hold the request that a layer without batches sends, but for its stream", () =>
    Effect.gen(function* () {
      const server = yield* serve
      yield* ask("say a").pipe(Effect.provide(layer(server)))
      const sent: Array<string> = []
      const fetch: typeof globalThis.fetch = async (_, init) => {
        sent.push(typeof init?.body === "string" ? init.body : "")
        return new Response("{}", { status: 400 })
      }
      yield* Effect.exit(ask("say a").pipe(Effect.provide(plain(fetch))))
      const [line] = server.batches.flatMap(({ lines }) => lines)
      assert.deepStrictEqual({ ...line?.body, stream: true }, JSON.parse(sent[0] ?? ""))
    }).pipe(Effect.provide(KeyValueStore.layerMemory))
  )

  it.live("are sent at the limit, and equal requests have answers of their own", () =>
    Effect.gen(function* () {
      const server = yield* serve
      yield* Effect.all([ask("say a"), ask("say a"), ask("say a"), ask("say b")], { concurrency: "unbounded" }).pipe(
        Effect.provide(layer(server, { limit: 2, window: 60_000 }))
      )
      assert.deepStrictEqual(
        server.batches.map(({ lines }) => lines.length),
        [2, 2]
      )
      const ids = server.batches.flatMap(({ lines }) => lines.map(({ id }) => id))
      assert.strictEqual(new Set(ids).size, 4)
    }).pipe(Effect.provide(KeyValueStore.layerMemory))
  )

  it.live("go on in a process after a crash, and are not paid twice", () =>
    Effect.gen(function* () {
      const server = yield* serve
      server.isDone = false
      const crashed = yield* Scope.make()
      const first = yield* Layer.buildWithScope(layer(server), crashed)
      const runs = yield* Effect.forkChild(
        Effect.all([ask("say a"), ask("say b"), ask("say LOSE")], { concurrency: "unbounded" }).pipe(
          Effect.provide(first)
        )
      )
      yield* until(() => (server.batches[0]?.looks ?? 0) > 0)
      yield* Scope.close(crashed, Exit.void)
      yield* Fiber.interrupt(runs)
      server.isDone = true
      const again = yield* Effect.all([ask("say a"), ask("say b")], { concurrency: "unbounded" }).pipe(
        Effect.provide(layer(server))
      )
      assert.deepStrictEqual(again.map(Message.text), ["A", "B"])
      assert.strictEqual(server.batches.length, 1)
      // An answer is given once: the same request is a new one afterwards.
      yield* ask("say a").pipe(Effect.provide(layer(server)))
      assert.strictEqual(server.batches.length, 2)
    }).pipe(Effect.provide(KeyValueStore.layerMemory))
  )

  it.live("keep an answer until its run has it: a process that died before reads it again", () =>
    Effect.gen(function* () {
      const server = yield* serve
      const memory = yield* KeyValueStore.KeyValueStore
      /** A process that is left in the middle of its run: nothing of it is closed. */
      const die = Effect.gen(function* () {
        const scope = yield* Scope.make()
        const model = Context.get(yield* Layer.buildWithScope(layer(server), scope), ChatModel.ChatModel)
        const session = yield* Scope.provide(ChatModel.open(model), yield* Scope.make())
        return yield* Stream.runDrain(session.nextTurn(request("say a")))
      })
      yield* die
      yield* die
      assert.strictEqual(Message.text(yield* ask("say a").pipe(Effect.provide(layer(server)))), "A")
      assert.strictEqual(server.batches.length, 1)
      assert.strictEqual(yield* memory.size, 0)
    }).pipe(Effect.provide(KeyValueStore.layerMemory))
  )

  it.live("keep the answer of a run that broke off, and forget it with the next turn or a model's failure", () =>
    Effect.gen(function* () {
      const server = yield* serve
      const memory = yield* KeyValueStore.KeyValueStore
      const runThen = (exit: Exit.Exit<unknown, unknown>, ...texts: ReadonlyArray<string>) =>
        Effect.gen(function* () {
          const scope = yield* Scope.make()
          const session = yield* Scope.provide(ChatModel.open(yield* ChatModel.ChatModel), scope)
          for (const text of texts) yield* Stream.runDrain(session.nextTurn(request(text)))
          const kept = yield* memory.size
          yield* Scope.close(scope, exit)
          return [kept, yield* memory.size, server.batches.length]
        })
      const filtered = new ModelError.ModelError({ provider: "p", reason: { _tag: "ContentFiltered" } })
      yield* Effect.gen(function* () {
        assert.deepStrictEqual(yield* runThen(Exit.fail("no disk"), "say a"), [1, 1, 1])
        assert.deepStrictEqual(yield* runThen(Exit.interrupt(), "say a"), [1, 1, 1])
        assert.deepStrictEqual(yield* runThen(Exit.fail(filtered), "say a"), [1, 0, 1])
        assert.deepStrictEqual(yield* runThen(Exit.void, "say a", "say b"), [1, 0, 3])
      }).pipe(Effect.provide(layer(server)))
    }).pipe(Effect.provide(KeyValueStore.layerMemory))
  )

  it.live("that begin without anybody learning their id are found, and are not paid twice", () =>
    Effect.gen(function* () {
      const server = yield* serve
      const cut = layer(server, { fetch: cutBegin("answer") })
      const texts = ["say a", "say b"]
      const failures = yield* Effect.all(
        texts.map((text) => Effect.flip(ask(text))),
        { concurrency: "unbounded" }
      ).pipe(Effect.provide(cut))
      for (const { reason } of failures) assert.strictEqual(reason._tag, "Transport")
      // Other programs began batches since: more than a page of them.
      for (let at = 0; at < 3; at++) server.batches.push({ lines: [], input: `file-other_${at}`, looks: 0 })
      const answers = yield* Effect.all(texts.map(ask), { concurrency: "unbounded" }).pipe(
        Effect.provide(layer(server))
      )
      assert.deepStrictEqual(answers.map(Message.text), ["A", "B"])
      assert.strictEqual(server.batches.length, 4)
    }).pipe(Effect.provide(KeyValueStore.layerMemory))
  )

  it.live("that did not begin are asked for anew, also if another's batch is of the same size and time", () =>
    Effect.gen(function* () {
      const server = yield* serve
      yield* Effect.flip(ask("say a")).pipe(Effect.provide(layer(server, { fetch: cutBegin("never") })))
      assert.strictEqual(server.batches.length, 0)
      const others = [{ id: "another", body: { input: "say x", messages: [] } }]
      server.batches.push({ lines: others, input: "file-other_0", looks: 0 })
      server.batches.push({ lines: [], input: "file-other_1", looks: 0, at: Date.now() - 3_600_000 })
      server.batches.push({ lines: [], input: "file-other_2", looks: 0, at: Date.now() - 3_600_000 })
      assert.strictEqual(Message.text(yield* ask("say a").pipe(Effect.provide(layer(server)))), "A")
      assert.strictEqual(server.batches.length, 4)
    }).pipe(Effect.provide(KeyValueStore.layerMemory))
  )

  it.live("that the provider refuses leave nothing in the store", () =>
    Effect.gen(function* () {
      const server = yield* serve
      const fetch: typeof globalThis.fetch = async (input, init) =>
        isBegin(input, init?.method)
          ? Response.json({ error: { message: "no" } }, { status: 400 })
          : globalThis.fetch(input, init)
      yield* Effect.flip(ask("say a")).pipe(Effect.provide(layer(server, { fetch })))
      assert.strictEqual(yield* (yield* KeyValueStore.KeyValueStore).size, 0)
    }).pipe(Effect.provide(KeyValueStore.layerMemory))
  )

  it.live("that the provider does not have any more are asked for anew", () =>
    Effect.gen(function* () {
      const server = yield* serve
      server.isDone = false
      const run = yield* Effect.forkChild(ask("say a").pipe(Effect.provide(layer(server))))
      yield* until(() => (server.batches[0]?.looks ?? 0) > 0)
      yield* Fiber.interrupt(run)
      server.isDone = true
      server.failures.push(404)
      assert.strictEqual(Message.text(yield* ask("say a").pipe(Effect.provide(layer(server)))), "A")
      assert.strictEqual(server.batches.length, 2)
    }).pipe(Effect.provide(KeyValueStore.layerMemory))
  )

  it.live("a left run does not end the batch, and asks for its result later", () =>
    Effect.gen(function* () {
      const server = yield* serve
      server.isDone = false
      yield* Effect.gen(function* () {
        const left = yield* Effect.forkChild(ask("say a"))
        const stays = yield* Effect.forkChild(ask("say b"))
        yield* until(() => (server.batches[0]?.looks ?? 0) > 0)
        yield* Fiber.interrupt(left)
        server.isDone = true
        assert.strictEqual(Message.text(yield* Fiber.join(stays)), "B")
        assert.strictEqual(Message.text(yield* ask("say a")), "A")
      }).pipe(Effect.provide(layer(server)))
      assert.strictEqual(server.batches.length, 1)
      assert.isFalse(server.seen.some((one) => one.includes("cancel")))
    }).pipe(Effect.provide(KeyValueStore.layerMemory))
  )

  it.live("a failed request fails its own run, by type", () =>
    Effect.gen(function* () {
      const server = yield* serve
      const outcomes = yield* Effect.forEach(
        ["say a", "say REFUSE", "say EXPIRE", "say LOSE"],
        (text) => Effect.result(ask(text)),
        { concurrency: "unbounded" }
      ).pipe(Effect.provide(layer(server)))
      assert.strictEqual(server.batches.length, 1)
      assert.deepStrictEqual(
        outcomes.map((one) => (one._tag === "Success" ? Message.text(one.success) : one.failure.reason._tag)),
        ["A", "InvalidRequest", "Timeout", "BadResponse"]
      )
      const refused = outcomes[1]
      const error = refused?._tag === "Failure" ? refused.failure : assert.fail("no failure")
      assert.include(error.message, "no such parameter: sing")
      assert.notInclude(JSON.stringify(error), "canary")
    }).pipe(Effect.provide(KeyValueStore.layerMemory))
  )

  it.live("a store that can't be read sends nothing", () =>
    Effect.gen(function* () {
      const server = yield* serve
      const broken = Layer.succeed(
        KeyValueStore.KeyValueStore,
        KeyValueStore.makeStringOnly({
          get: () => Effect.fail(new KeyValueStore.KeyValueStoreError({ method: "get", message: "no disk" })),
          set: () => Effect.void,
          remove: () => Effect.void,
          clear: Effect.void,
          size: Effect.succeed(0),
          keys: Effect.succeed([])
        })
      )
      const error = yield* Effect.flip(ask("say a").pipe(Effect.provide(layer(server).pipe(Layer.provide(broken)))))
      assert.instanceOf(error, ModelError.ModelError)
      assert.include(error.message, "store of batches")
      assert.strictEqual(server.seen.length, 0)
    })
  )
})

describe("batches of Azure", () => {
  const azure = ({ url }: Batches) => ({ endpoint: url, deployment: "my-batch" })

  it.live("are OpenAI's at the paths of its v1 API, for a deployment, behind the processing of their file", () =>
    Effect.gen(function* () {
      const server = yield* serveAzure
      const layer = OpenAiChatModel.layerBatch({ model: "gpt-5.4", apiKey, azure: azure(server), ...quick })
      const agent = Agent.make({ name: "speaker", prompt: "You speak." })
      const { text, usage } = yield* Agent.run(agent, "say a").pipe(Effect.provide(layer))
      assert.strictEqual(text, "A")
      assert.closeTo(usage.cost ?? 0, providers.OpenAI.cost, 1e-9)
      assert.deepStrictEqual(
        server.batches.map(({ lines }) => lines.map(({ body }) => body.model)),
        [["my-batch"]]
      )
      assert.deepStrictEqual(
        server.seen.slice(0, 6).map((one) => one.replace("/openai/v1", "")),
        [
          "POST /files",
          "GET /files/file-in_0",
          "GET /files/file-in_0",
          "POST /batches",
          "GET /batches/batch_0",
          "GET /files/file-out_0/content"
        ]
      )
      for (const headers of server.headers) assert.strictEqual(headers["api-key"], Redacted.value(apiKey))
      assert.isUndefined(server.headers[0]?.authorization)
    }).pipe(Effect.provide(KeyValueStore.layerMemory))
  )

  it.live("are found if nobody learned their id", () =>
    Effect.gen(function* () {
      const server = yield* serveAzure
      const options = { model: "gpt-5.4", apiKey, azure: azure(server), ...quick }
      const cut = OpenAiChatModel.layerBatch({ ...options, fetch: cutBegin("answer") })
      yield* Effect.flip(ask("say a")).pipe(Effect.provide(cut))
      const answer = yield* ask("say a").pipe(Effect.provide(OpenAiChatModel.layerBatch(options)))
      assert.strictEqual(Message.text(answer), "A")
      assert.strictEqual(server.batches.length, 1)
    }).pipe(Effect.provide(KeyValueStore.layerMemory))
  )

  it.live("are refused with a dated API", () =>
    Effect.gen(function* () {
      const server = yield* serveAzure
      const layer = OpenAiChatModel.layerBatch({
        model: "gpt-5.4",
        apiKey,
        azure: { ...azure(server), apiVersion: "2025-04-01-preview" }
      })
      const error = yield* Effect.flip(Effect.scoped(Layer.build(layer)))
      assert.strictEqual(error.reason._tag, "Unsupported")
      assert.include(error.message, "azure.apiVersion")
    }).pipe(Effect.provide(KeyValueStore.layerMemory))
  )
})

/** Runs or resumes the run of a thread in a process of its own. */
const runChild = (server: Batches, folder: string, provider: string, diesAt: "begun" | "answer" | "never") =>
  Effect.callback<string>((resume) => {
    const child = bundle(new URL("batch-child.ts", import.meta.url))
    execFile(
      process.execPath,
      [child, server.url, folder, provider, diesAt],
      { env: { PATH: process.env["PATH"] ?? "" }, timeout: 110_000 },
      (error, stdout, stderr) => resume(Effect.succeed(error === null ? stdout.trim() : `${error.signal} ${stderr}`))
    )
  })

describe("a process that is killed", () => {
  const makeFolder = Effect.acquireRelease(
    Effect.promise(() => mkdtemp(join(tmpdir(), "batch-"))),
    (path) => Effect.promise(() => rm(path, { recursive: true }))
  )

  it.live(
    "with an answer that no thread has yet does not pay it twice",
    () =>
      Effect.gen(function* () {
        const server = yield* serveOpenAi
        const folder = yield* makeFolder
        assert.match(yield* runChild(server, folder, "OpenAI", "answer"), /^SIGKILL/)
        assert.deepStrictEqual([server.batches.length, server.batches[0]?.looks], [1, 1])
        assert.strictEqual(yield* runChild(server, folder, "OpenAI", "never"), "A, 0 kept")
        assert.deepStrictEqual([server.batches.length, server.batches[0]?.looks], [1, 2])
      }),
    120_000
  )

  it.live.each(Object.entries(providers))(
    "between the answer of %s and the write of the batch's id does not pay it twice",
    ([name, { serve }]) =>
      Effect.gen(function* () {
        const server = yield* serve
        const folder = yield* makeFolder
        assert.match(yield* runChild(server, folder, name, "begun"), /^SIGKILL/)
        assert.deepStrictEqual([server.batches.length, server.batches[0]?.looks], [1, 0])
        assert.strictEqual(yield* runChild(server, folder, name, "never"), "A, 0 kept")
        assert.deepStrictEqual([server.batches.length, server.batches[0]?.looks], [1, 1])
      }),
    120_000
  )
})

describe("the ends of a whole batch", () => {
  it.live.each([
    ["failed", "RateLimited"],
    ["cancelled", "Unknown"]
  ] as const)("of OpenAI that %s is typed", ([end, reason]) =>
    Effect.gen(function* () {
      const server = yield* serveOpenAi
      server.end = end
      const error = yield* Effect.flip(ask("say a").pipe(Effect.provide(providers.OpenAI.layer(server))))
      assert.strictEqual(error.reason._tag, reason)
    }).pipe(Effect.provide(KeyValueStore.layerMemory))
  )

  it.live("the key goes to the given server only", () =>
    Effect.gen(function* () {
      const server = yield* serveClaude
      yield* ask("say a").pipe(Effect.provide(providers.Anthropic.layer(server)))
      assert.deepStrictEqual(server.seen.slice(-2), [
        "GET /v1/messages/batches/msgbatch_0",
        "GET /v1/messages/batches/msgbatch_0/results"
      ])
    }).pipe(Effect.provide(KeyValueStore.layerMemory))
  )

  it.live("options that a batch does not have are refused", () =>
    Effect.gen(function* () {
      const more = { background: true }
      const options: OpenAiChatModel.BatchOptions = { model: "gpt-5.4", apiKey, ...more }
      const error = yield* Effect.flip(Effect.scoped(Layer.build(OpenAiChatModel.layerBatch(options))))
      assert.include(error.message, "background")
    }).pipe(Effect.provide(KeyValueStore.layerMemory))
  )
})
