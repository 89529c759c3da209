/** `deepagents doctor`: checks the agent of this folder and its needs. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Doctor from "../../../agents/Doctor.ts"
import { oneLine, visible } from "../../../support/text/untrusted.ts"
import { catalogueLayer } from "../config/catalogue.ts"
import { chooseModel, keyed, keyNames, modelLayer } from "../config/providers.ts"
import { serversLayer, tried } from "../config/servers.ts"
import { fail } from "../failure.ts"
import { print, printJson, table } from "../output.ts"
import { type Context, openApp, sessions } from "../work/app.ts"
import * as Demo from "../work/demo.ts"
import { listServers } from "../work/diagnostics.ts"
import { machine } from "../work/machine/host.ts"
import { checkSandbox } from "../work/machine/sandboxed.ts"

const marks = { ok: "✓", warning: "!", failure: "✗" }

/** Says whether editors can start the agent: the package of their protocol loads. */
const editors: Effect.Effect<Doctor.Report["findings"][number]> = Effect.promise(() =>
  import("@agentclientprotocol/sdk").then(
    ({ PROTOCOL_VERSION }) => ({
      area: "tools",
      name: "deepagents acp",
      status: "ok",
      detail: `Agent Client Protocol, version ${PROTOCOL_VERSION}`
    }),
    () => ({
      area: "tools",
      name: "deepagents acp",
      status: "warning",
      detail: "the package of the protocol can't be loaded",
      advice: "install the program again"
    })
  )
)

/** Says which language servers tell about edits. A missing one is no fault. */
const languages = Effect.fnUntraced(function* (context: Context) {
  const servers = yield* listServers(context)
  const here = servers.flatMap(({ program }) => program ?? [])
  const missing = servers
    .filter(({ program }) => program === undefined)
    .map(({ extensions, names }) => `.${extensions[0]}: ${names.join(", ")}`)
  const parts = [
    here.length === 0 ? "no language server is installed" : visible(oneLine(here.join(", "))),
    ...(missing.length === 0 ? [] : [`not installed for ${visible(oneLine(missing.join("; ")))}`])
  ]
  const isOff = context.settings.lsp?.value === false
  return {
    area: "tools",
    name: "diagnostics after edits",
    status: "ok",
    detail: isOff ? "switched off" : parts.join("; ")
  } satisfies Doctor.Report["findings"][number]
})

/** Names the source of the model's key. */
const keyOf = Effect.fnUntraced(function* (context: Context, model: string) {
  const provider = (yield* keyed(context.places)).find(({ name }) => model.startsWith(`${name}:`))
  if (provider?.key === undefined) return []
  const detail = `${provider.name}: ${keyNames[provider.key]}`
  return [{ area: "model", name: "key", status: "ok", detail } satisfies Doctor.Report["findings"][number]]
})

export const doctor = Effect.fnUntraced(function* (
  context: Context,
  options: { readonly live: boolean; readonly format: "text" | "markdown" | "json" }
) {
  // A missing model is a finding. The other checks still run.
  const model = yield* Effect.result(
    context.isDemo ? Effect.succeed("") : chooseModel(context.places, context.settings)
  )
  const app = yield* openApp(Result.isSuccess(model) ? context : { ...context, isDemo: true })
  const agent = yield* app.agent({ mode: "ask" })
  const { places, settings } = context
  const folder = machine(context, undefined)
  const { problems, servers } = app.servers
  const results = servers.length === 0 ? [] : yield* Effect.provide(tried, serversLayer(places, servers))
  const report = yield* Doctor.check(agent, {
    live: options.live,
    model: Result.isFailure(model)
      ? Layer.effectContext(fail("noModel", "no provider has a key: deepagents models login"))
      : context.isDemo
        ? Demo.model
        : modelLayer(places, settings, app.model),
    sessions: sessions(places),
    files: folder,
    sandbox: folder,
    servers: Object.fromEntries(
      results.map(({ problem, status }) => [
        status.name,
        problem === undefined ? Effect.void : Effect.fail({ message: problem })
      ])
    )
  }).pipe(Effect.provide(catalogueLayer(places)))
  const broken: ReadonlyArray<Doctor.Report["findings"][number]> = app.agents.problems.map(({ path, problem }) => ({
    area: "agent",
    name: path,
    status: "failure",
    detail: problem,
    advice: "correct the file, or delete it"
  }))
  const unread = problems.map((detail): Doctor.Report["findings"][number] => ({
    area: "servers",
    name: "configuration",
    status: "warning",
    detail,
    advice: "correct the file"
  }))
  const whole: Doctor.Report = {
    ...report,
    ok: report.ok && broken.length === 0,
    findings: [
      ...report.findings,
      ...(Result.isSuccess(model) ? yield* keyOf(context, app.model) : []),
      ...broken,
      ...unread,
      yield* editors,
      yield* languages(context),
      yield* checkSandbox(settings)
    ]
  }
  if (options.format === "json") yield* printJson(whole)
  else if (options.format === "markdown") yield* print(Doctor.toMarkdown(whole))
  else {
    yield* print(
      ...table(
        whole.findings.map(({ advice, area, detail, name, status }) => [
          marks[status],
          `${area}: ${name}`,
          status === "ok" || advice === undefined ? detail : `${detail} (${advice})`
        ])
      )
    )
  }
  return whole.ok ? undefined : yield* fail("failed", "Not ready: see ✗ above.")
})
