/**
 * Checks an agent and its surroundings before somebody waits for it: its limits, the schema of each tool by the rules of
 * each provider, the model and its key, the stores, the sandbox, servers.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent } from "effect-deepagents"
 * import { Doctor } from "effect-deepagents/agents"
 * import { ChatModels } from "effect-deepagents/models"
 *
 * const agent = Agent.make({ name: "helper", prompt: "You help." })
 *
 * const program = Effect.gen(function* () {
 *   const report = yield* Doctor.check(agent, { live: true, model: ChatModels.resolve("anthropic:claude-opus-5-5") })
 *   yield* Effect.log(Doctor.toMarkdown(report))
 *   return report.ok
 * })
 * ```
 *
 * In a test, `toolProblems(agent)` is a list that should be empty.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Agent from "../core/Agent.ts"
import { Backend } from "../core/Backend.ts"
import { ChatModel, type Service, type ToolDefinition } from "../core/ChatModel.ts"
import * as Message from "../core/Message.ts"
import { Sandbox } from "../core/Sandbox.ts"
import { SessionStore } from "../core/SessionStore.ts"
import { describeAge } from "../models/ModelCatalogue.ts"
import * as ToolSchema from "../models/ToolSchema.ts"
import { defined } from "../support/json/defined.ts"
import { normaliseName } from "../support/text/names.ts"
import { oneLine } from "../support/text/untrusted.ts"
import { addUses, cacheUseOf, describeUse } from "./internal/cacheUse.ts"

/** One finding: a `failure` keeps the agent from working, a `warning` will surprise somebody. */
const Finding = Schema.Struct({
  area: Schema.Literals(["agent", "tools", "model", "sessions", "files", "sandbox", "servers"]),
  name: Schema.String,
  status: Schema.Literals(["ok", "warning", "failure"]),
  detail: Schema.String,
  advice: Schema.optionalKey(Schema.String)
})
type Finding = typeof Finding.Type

/** The schema of a report. `ok` is false if a finding is a failure. The `advice` of a finding names the next step. */
export const Report = Schema.Struct({ agent: Schema.String, ok: Schema.Boolean, findings: Schema.Array(Finding) })
export interface Report extends Schema.Schema.Type<typeof Report> {}

type Area = Finding["area"]

const makeFinding =
  (status: Finding["status"]) =>
  (area: Area, name: string, detail: string, advice?: string): Finding => ({
    area,
    name,
    status,
    detail,
    ...defined({ advice })
  })
const ok = makeFinding("ok")
const warning = makeFinding("warning")
const failure = makeFinding("failure")

const dialects = ["openai", "anthropic", "gemini"] as const
type Dialect = (typeof dialects)[number]

const dialectOf = (provider: string): Dialect => {
  const name = normaliseName(provider)
  if (name === "anthropic" || name === "bedrock") return "anthropic"
  return name === "google" || name === "gemini" ? "gemini" : "openai"
}

/** Limits of OpenAI: tools of a request, characters of a tool's description. */
const mostTools = 128
const mostDescribed = 1024

const schemaProblems = (tool: ToolDefinition, all: ReadonlyArray<Dialect>): ReadonlyArray<string> =>
  all.flatMap((dialect) =>
    ToolSchema.check(ToolSchema.fit(tool.parameters, dialect), dialect).map(
      (problem) => `${tool.name} (${dialect}): ${problem}`
    )
  )

/** Lists the tool schemas of an agent that providers would refuse: all providers, or one. */
export const toolProblems = (
  agent: Agent.Agent<unknown, unknown, unknown>,
  options?: {
    /** The provider whose rules apply. Default: all providers. */
    readonly provider?: string | undefined
  }
): ReadonlyArray<string> => {
  const used = options?.provider === undefined ? dialects : [dialectOf(options.provider)]
  return Agent.describe(agent).tools.flatMap((tool) => schemaProblems(tool, used))
}

const ofAgent = ({ maxRounds, problem, toolConcurrency }: Agent.Description): ReadonlyArray<Finding> => [
  problem === undefined
    ? ok("agent", "definition", "it can run")
    : failure("agent", "definition", problem, "mend the agent; its runs fail with InvalidAgent"),
  maxRounds > 1000
    ? warning("agent", "maxRounds", `${maxRounds} rounds`, "a run in circles would cost as much; set a Budget, too")
    : ok("agent", "maxRounds", `${maxRounds} rounds`),
  toolConcurrency > 64
    ? warning("agent", "toolConcurrency", `${toolConcurrency} calls at once`, "few services bear that; 8 is usual")
    : ok("agent", "toolConcurrency", `${toolConcurrency} calls at once`)
]

const ofTools = ({ tools }: Agent.Description, model: Service | undefined): ReadonlyArray<Finding> => {
  const used = model === undefined ? dialects : [dialectOf(model.provider)]
  const problems = tools.flatMap((tool) => schemaProblems(tool, used))
  // Without a tokeniser, four characters count as a token.
  const tokens = Math.ceil(JSON.stringify(tools).length / 4)
  const window = model?.contextWindowTokens
  const long = tools.filter(({ description }) => description.length > mostDescribed).map(({ name }) => name)
  const silent = tools.filter(({ description }) => description.trim() === "").map(({ name }) => name)
  return [
    ...problems.map((problem) =>
      failure("tools", "schema", problem, "change its parameters: the provider would refuse them")
    ),
    ...(problems.length === 0 ? [ok("tools", "schemas", `${tools.length} fit ${used.join(", ")}`)] : []),
    ...(tools.length > mostTools
      ? [failure("tools", "number", `${tools.length} tools`, `OpenAI takes ${mostTools}; use ToolSelection`)]
      : []),
    ...(long.length > 0 && used.includes("openai")
      ? [
          warning(
            "tools",
            "descriptions",
            `longer than ${mostDescribed} characters: ${long.join(", ")}`,
            "some servers cut or refuse them"
          )
        ]
      : []),
    ...(silent.length > 0
      ? [warning("tools", "descriptions", `none: ${silent.join(", ")}`, "a model can't know what they are for")]
      : []),
    ...(window !== undefined && tokens > window / 4
      ? [
          warning(
            "tools",
            "size",
            `about ${tokens} tokens of a window of ${window}`,
            "use ToolSelection, or fewer tools"
          )
        ]
      : [])
  ]
}

const ping = (model: Service) =>
  Effect.scoped(
    Effect.gen(function* () {
      const begun = yield* Clock.currentTimeMillis
      const session = yield* model.makeSession
      yield* Stream.runDrain(
        session.nextTurn({
          messages: [Message.human("Say: ok")],
          systemPrompt: "",
          tools: [],
          toolChoice: "auto",
          parameters: { maxTokens: 16 },
          cacheHints: [],
          purpose: "ping"
        })
      )
      return (yield* Clock.currentTimeMillis) - begun
    })
  ).pipe(
    Effect.timeoutOrElse({ duration: "30 seconds", orElse: () => Effect.fail({ message: "no answer in 30 seconds" }) }),
    Effect.match({
      onFailure: ({ message }) => failure("model", "answer", oneLine(message), "see the message; then check again"),
      onSuccess: (millis) => ok("model", "answer", `in ${millis} ms`)
    })
  )

const ofModel = Effect.fnUntraced(function* (model: Service, live: boolean) {
  const { contextWindowTokens: window, modelId, prices, provider } = model
  const age = yield* describeAge
  return [
    ok("model", "model", `${provider}:${modelId}`),
    window === undefined
      ? warning("model", "window", "its size is not known", "give contextWindowTokens: summaries begin by it")
      : ok("model", "window", `${window} tokens`),
    prices === undefined
      ? warning("model", "prices", "not known", "give prices: costs are not counted, and no budget of money holds")
      : ok("model", "prices", `${prices.input} in, ${prices.output} out, for a million tokens`),
    ...(age === undefined ? [] : [warning("model", "catalogue", age, "deepagents models refresh")]),
    ...(live ? [yield* ping(model)] : [])
  ]
})

const probe = Effect.map(Clock.currentTimeMillis, (now) => `doctor-${now.toString(36)}`)

/** Threads, and entries of each, in which the use of the cache is looked up. */
const mostThreads = 20
const mostEntries = 400

/** Tells how much of the input of recent threads came from the provider's cache, and what broke it. */
const ofCache = Effect.fnUntraced(
  function* (store: SessionStore["Service"]) {
    const { items } = yield* store.list({ limit: mostThreads })
    const pages = yield* Effect.forEach(items, ({ threadId }) => store.load(threadId, { limit: mostEntries }), {
      concurrency: 4
    })
    const use = describeUse(addUses(pages.map(({ entries }) => cacheUseOf(entries))))
    if (use === undefined) return []
    const { advice, detail, share } = use
    return [
      share < 0.5
        ? warning("sessions", "price of repeated text", detail, advice)
        : ok("sessions", "price of repeated text", detail)
    ]
  },
  Effect.orElseSucceed((): ReadonlyArray<Finding> => [])
)

const ofSessions = Effect.fnUntraced(function* (store: SessionStore["Service"]) {
  const threadId = yield* probe
  const tried = Effect.andThen(store.create({ threadId }), store.delete(threadId))
  const writable = yield* Effect.match(tried, {
    onFailure: ({ message }) => failure("sessions", "writable", message, "check its file, its rights, its server"),
    onSuccess: () => ok("sessions", "writable", "opened, migrated, written to")
  })
  return [writable, ...(yield* ofCache(store))]
})

const ofFiles = Effect.fnUntraced(function* (backend: Backend["Service"]) {
  const path = `.${yield* probe}`
  const listCheck = yield* Effect.match(backend.ls("."), {
    onFailure: ({ message }) => failure("files", "readable", message, "check the folder and its rights"),
    onSuccess: () => ok("files", "readable", "the working folder can be listed")
  })
  const writeCheck = yield* Effect.match(Effect.andThen(backend.write(path, "ok"), backend.delete(path)), {
    onFailure: ({ message }) => warning("files", "writable", message, "fine if the agent is only to read"),
    onSuccess: () => ok("files", "writable", "a file was written and deleted")
  })
  return [listCheck, writeCheck]
})

const secret = /^[A-Za-z0-9_]*(?:API_?KEY|SECRET|TOKEN|PASSWORD)[A-Za-z0-9_]*(?==.)/gim

const ofSandbox = Effect.fnUntraced(function* (sandbox: Sandbox["Service"]) {
  const isLocal = /^(?:local|host):/.test(sandbox.id)
  const ran = yield* Effect.result(sandbox.execute("env", { timeout: "20 seconds" }))
  if (ran._tag === "Failure") {
    return [failure("sandbox", "commands", ran.failure.message, "check that it is up, and its shell")]
  }
  const secretNames = [...new Set(ran.success.output.match(secret) ?? [])]
  return [
    ok("sandbox", "commands", sandbox.id),
    isLocal
      ? warning("sandbox", "isolation", "none: commands run with your rights", "have them approved, or use a sandbox")
      : ok(
          "sandbox",
          "isolation",
          sandbox.id.startsWith("os:") ? "commands reach their folders only" : "commands run elsewhere"
        ),
    secretNames.length > 0
      ? failure("sandbox", "secrets", `commands can read ${secretNames.join(", ")}`, "take them out of its environment")
      : ok("sandbox", "secrets", "none in the environment of commands")
  ]
})

/**
 * The surroundings to check beside the agent. The check builds each layer. A layer that can't be built is a failure of
 * its area.
 */
export interface Options<R = never> {
  /** Asks the model for one word, which may cost a fraction of a cent. */
  readonly live?: boolean | undefined
  /** The model that is looked at. Default: none. */
  readonly model?: Layer.Layer<ChatModel, Problem, R> | undefined
  /** The store of threads. Default: none. */
  readonly sessions?: Layer.Layer<SessionStore, Problem, R> | undefined
  /** The files of the agent. Default: none. */
  readonly files?: Layer.Layer<Backend, Problem, R> | undefined
  /** The machine that runs commands. Default: none. */
  readonly sandbox?: Layer.Layer<Sandbox, Problem, R> | undefined
  /** Servers that tools need, by name. The effect fails if its server can't be reached. */
  readonly servers?: { readonly [name: string]: Effect.Effect<unknown, Problem, R> } | undefined
}

/** An error that a person can read. */
interface Problem {
  readonly message: string
}

/** Builds a layer and checks its service. A layer that can't be built is the finding. */
const checkLayer = <I, S, R, R2>(
  area: Area,
  layer: Layer.Layer<I, Problem, R> | undefined,
  tag: Context.Service<I, S>,
  look: (service: S) => Effect.Effect<ReadonlyArray<Finding>, never, R2>,
  advice: string
): Effect.Effect<ReadonlyArray<Finding>, never, R | R2> =>
  layer === undefined
    ? Effect.succeed([])
    : Effect.scoped(Effect.flatMap(Layer.build(layer), (context) => look(Context.get(context, tag)))).pipe(
        Effect.catch(({ message }) => Effect.succeed([failure(area, "opened", oneLine(message), advice)]))
      )

/** Checks an agent without running it or its tools. */
export const check = Effect.fnUntraced(function* <R = never>(
  agent: Agent.Agent<unknown, unknown, unknown>,
  options: Options<R> = {}
): Effect.fn.Return<Report, never, R> {
  const described = Agent.describe(agent)
  const live = options.live === true
  const withTools = (model: Service) =>
    Effect.map(ofModel(model, live), (found) => [...ofTools(described, model), ...found])
  const model = yield* checkLayer("model", options.model, ChatModel, withTools, "set the key, or name another model")
  const isAsked = model.some(({ area }) => area === "tools")
  const servers = yield* Effect.forEach(
    Object.entries(options.servers ?? {}),
    ([name, reach]) =>
      Effect.match(reach, {
        onFailure: ({ message }) => failure("servers", name, oneLine(message), "check its command or address"),
        onSuccess: () => ok("servers", name, "it answers")
      }),
    { concurrency: 4 }
  )
  const findings = [
    ...ofAgent(described),
    ...(isAsked ? [] : ofTools(described, undefined)),
    ...model,
    ...(yield* checkLayer(
      "sessions",
      options.sessions,
      SessionStore,
      ofSessions,
      "check its file, its rights, its server"
    )),
    ...(yield* checkLayer("files", options.files, Backend, ofFiles, "check the folder and its rights")),
    ...(yield* checkLayer("sandbox", options.sandbox, Sandbox, ofSandbox, "check that it is up")),
    ...servers
  ]
  return { agent: described.name, ok: findings.every(({ status }) => status !== "failure"), findings }
})

const marks = { ok: "✓", warning: "!", failure: "✗" }

const cell = (text: string): string => oneLine(text).replaceAll("|", "\\|")

/** Writes a report as Markdown. */
export const toMarkdown = ({ agent, findings, ok: isFine }: Report): string =>
  [
    `# ${cell(agent)}: ${isFine ? "fine" : "not ready"}`,
    "",
    "|  | what | found | what to do |",
    "| --- | --- | --- | --- |",
    ...findings.map(
      ({ advice = "", area, detail, name, status }) =>
        `| ${marks[status]} | ${area}: ${cell(name)} | ${cell(detail)} | ${cell(advice)} |`
    ),
    ""
  ].join("\n")
