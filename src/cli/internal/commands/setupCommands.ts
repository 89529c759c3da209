/** Commands about the setup: models and keys, agents, skills, settings. */
import * as Prompt from "effect/cli/Prompt"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
import * as Skills from "../../../middleware/Skills.ts"
import { suggestion } from "../../../support/text/near.ts"
import { oneLine, visible } from "../../../support/text/untrusted.ts"
import * as Assets from "../assets.ts"
import * as Agents from "../config/agents.ts"
import { signIn, signOut } from "../config/chatgpt.ts"
import { forgetKey, keepKey } from "../config/credentials.ts"
import { frozenAt } from "../config/frozen.ts"
import { checkKey } from "../config/modelList.ts"
import * as Providers from "../config/providers.ts"
import { refresh as refreshCatalogue } from "../config/refreshCatalogue.ts"
import { fail, orFail } from "../failure.ts"
import { canAsk, print, printJson, table, tell } from "../output.ts"
import { pluginsOf, skillsOf } from "../project/brought.ts"
import { askPerson } from "../question.ts"
import { type Context, skillSources } from "../work/app.ts"
import { machine } from "../work/machine/host.ts"

export const models = Effect.fnUntraced(function* ({ places, settings }: Context, asJson: boolean) {
  const all = yield* Providers.keyed(places)
  const local = yield* Providers.ollama
  const files = yield* Providers.ggufs(places)
  const modelName = settings.model?.value ?? all.find(({ key }) => key !== undefined)?.model
  if (asJson) {
    yield* printJson({ providers: all, ollama: local ?? null, files, model: settings.model?.value ?? null })
    return modelName === undefined ? undefined : yield* Effect.asVoid(Providers.providerOf(modelName))
  }
  const rows = all.map(({ key, model, variable }) => [
    model,
    key === undefined ? `no key (${variable}, or deepagents models login)` : Providers.keyNames[key]
  ])
  const here = [
    ...(local ?? []).map((name) => [`ollama:${name}`, "runs here"]),
    ...files.map((file) => [`llama:${file}`, "a file here"])
  ]
  yield* print(...table([...rows, ...here]), "")
  if (modelName !== undefined) yield* Providers.providerOf(modelName)
  return yield* print(
    modelName === undefined
      ? "No model is set up yet."
      : `The model is ${modelName}. Choose another model of these providers with --model provider:model`
  )
})

/** Renews the catalogue of models. */
export const refresh = Effect.fnUntraced(function* ({ places }: Context, from: string | undefined, asJson: boolean) {
  const result = yield* refreshCatalogue(places, from)
  if (asJson) return yield* printJson(result)
  const limitsText = result.asked.length === 0 ? "" : `, and limits of ${result.asked.join(", ")}`
  return yield* tell(
    `${result.models} models, from ${visible(oneLine(result.from))}${limitsText}. Kept in ${result.file}.`
  )
})

/** Reads a key without echo at a terminal, or from a pipe. It is never an argument. */
const readKey = Effect.fnUntraced(function* (name: string) {
  const stdio = yield* Stdio.Stdio
  if (yield* stdio.stdinIsTerminal) {
    const prompt = askPerson(Prompt.Hidden({ message: `Key of ${name}` }))
    return yield* Effect.catch(prompt, () => fail("interrupted", "\nNo key was kept."))
  }
  return Redacted.make((yield* orFail("failed")(Stream.mkString(Stream.decodeText(stdio.stdin)))).trim())
})

export const login = Effect.fnUntraced(function* ({ places }: Context, given: string | undefined) {
  const all = yield* Providers.keyed(places)
  const names = all.map(({ name }) => name)
  if (given === undefined && !(yield* canAsk)) {
    return yield* fail("usage", `Name a provider, and pipe its key in: deepagents models login ${names.join("|")}`)
  }
  const name =
    given ??
    (yield* Effect.catch(
      askPerson(Prompt.Select({ message: "Provider", choices: names.map((value) => ({ title: value, value })) })),
      () => fail("interrupted", "\nNo key was kept.")
    ))
  const provider = all.find((one) => one.name === name)
  if (provider === undefined)
    return yield* fail("usage", `No key is needed for ${JSON.stringify(name)}. ${suggestion(name, names)}`)
  const key = yield* readKey(name)
  const text = Redacted.value(key).trim()
  if (text === "") return yield* fail("usage", "The key is empty; no key was kept.")
  if (!/^[!-~]+$/.test(text)) {
    const problem = "it has a blank, or a character such as … or a quotation mark that no key has"
    return yield* fail("usage", `This is not a key: ${problem}. Copy it again; no key was kept.`)
  }
  const checked = yield* checkKey(name, key)
  if (checked._tag === "Refused") {
    const problem = `${name} refuses this key (status ${checked.status})`
    return yield* fail("noModel", `${problem}. Copy it again, or make a new key there; no key was kept.`)
  }
  // A key replaces a sign-in.
  if (name === "openai") yield* signOut(places, false)
  yield* keepKey(places, name, key)
  const how =
    checked._tag === "Accepted"
      ? `${name} accepts it, and lists ${checked.models.length} models.`
      : `It was not checked: ${checked.why}.`
  return yield* tell(`Kept. ${how} ${provider.model} is the model unless you name another.`)
})

/** Signs the person in with the ChatGPT plan. The key of the environment still wins. */
export const loginByChatGpt = Effect.fnUntraced(function* ({ places }: Context, given: string | undefined) {
  if (given !== undefined && given !== "openai") {
    return yield* fail("usage", `--chatgpt is for openai: deepagents models login openai --chatgpt`)
  }
  const stdio = yield* Effect.context<Stdio.Stdio>()
  yield* signIn(places, (lines) => Effect.provideContext(tell(...lines), stdio))
  const openai = (yield* Providers.keyed(places)).find(({ name }) => name === "openai")
  return yield* tell(
    "You're using your ChatGPT plan: requests of this program count towards it, those of schedules too.",
    "Manage usage: https://chatgpt.com/settings/usage",
    openai?.key === "environment"
      ? "OPENAI_API_KEY is set, and wins: unset it to use the plan."
      : `${openai?.model} is the model unless you name another.`
  )
})

const signedOut = {
  revoked: "Signed out of ChatGPT. To sign in with another account, run this once more first.",
  unconfirmed:
    "The sign-in is forgotten here, but OpenAI did not confirm its end. End it in the settings of ChatGPT, among the connected apps.",
  unregistered: "The registration of this account is forgotten: the next sign-in can be of another one."
} as const

export const logout = Effect.fnUntraced(function* ({ places }: Context, name: string) {
  const ended = name === "openai" ? yield* signOut(places) : undefined
  if (ended !== undefined) return yield* tell(signedOut[ended])
  const wasThere = yield* forgetKey(places, name)
  return yield* tell(wasThere ? "Forgotten." : `No key was kept for ${name}.`)
})

const findAgents = Effect.fnUntraced(function* (context: Context) {
  const { plugins } = yield* pluginsOf(context)
  return yield* Agents.findAgents(context.places, context.project, plugins)
})

export const agents = Effect.fnUntraced(function* (context: Context, asJson: boolean) {
  const result = yield* findAgents(context)
  if (asJson) {
    return yield* printJson({
      agents: result.agents,
      problems: result.problems.map(({ path, problem }) => ({ path, problem }))
    })
  }
  yield* print(
    ...table(result.agents.map(({ description, name, origin }) => [name, origin, oneLine(description).slice(0, 120)]))
  )
  for (const { message } of result.problems) yield* tell(`! ${visible(message)}`)
  return undefined
})

export const agent = Effect.fnUntraced(function* (context: Context, name: string) {
  const definition = yield* Agents.agentOf(yield* findAgents(context), name)
  const { prompt, ...rest } = definition
  const fields = Object.entries(rest).map(([field, value]) => [
    field,
    typeof value === "string" ? value : JSON.stringify(value)
  ])
  return yield* print(...table(fields), "", visible(prompt))
})

/** Lists the skills of an agent. */
export const scanned = (context: Context) =>
  orFail("failed")(Effect.provide(Effect.flatMap(skillSources(context), Skills.scan), machine(context, undefined)))

export const skills = Effect.fnUntraced(function* (context: Context, asJson: boolean) {
  const scan = yield* scanned(context)
  if (asJson) return yield* printJson(scan)
  const folders = [{ label: "packaged", folder: Assets.skills }, ...(yield* skillsOf(context))]
  const originOf = (path: string): string =>
    folders.find(({ folder }) => path.startsWith(`${folder}/`))?.label ??
    (path.startsWith(`${frozenAt(context.places, context.memory.skills)}/`) ? "memory" : "project")
  yield* print(
    ...table(
      scan.skills.map(({ description, name, path }) => [name, originOf(path), oneLine(description).slice(0, 120)])
    )
  )
  for (const { field, path, problem } of scan.problems)
    yield* tell(`! ${path}: ${field} ${problem}`.replace(":  ", ": "))
  return undefined
})
