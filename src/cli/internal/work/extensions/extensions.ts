/** Loads extensions into this process, with the library of the program. */
import { registerHooks } from "node:module"
import { pathToFileURL } from "node:url"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import type { Stdio } from "effect/Stdio"
import * as Extension from "../../../../agents/Extension.ts"
import type { ChatModel } from "../../../../core/ChatModel.ts"
import * as ChatModels from "../../../../models/ChatModels.ts"
import { defined } from "../../../../support/json/defined.ts"
import { normaliseName } from "../../../../support/text/names.ts"
import { cut } from "../../../../support/text/text.ts"
import { oneLine } from "../../../../support/text/untrusted.ts"
import type { Choice, Command, CommandOutcome } from "../../chat/options.ts"
import type { Entry } from "../../config/extensionFiles.ts"
import type { Settings } from "../../config/settings.ts"
import { type Failure, layerOrFail } from "../../failure.ts"
import { tell } from "../../output.ts"

/** An extension that was loaded. */
export interface LoadedExtension {
  readonly extension: Extension.Extension<Extension.Services>
  readonly entry: Entry
}

/** Time for the code of an extension to load. */
const timeout = "20 seconds"

/** The folders of extensions as addresses, with an address whose packages they may import. */
const places = new Map<string, string | undefined>()

const isOfLibrary = (specifier: string): boolean => /^effect(?:-deepagents)?(?:\/|$)/.test(specifier)

const isPackage = (specifier: string): boolean => /^(?!node:)[@\w]/.test(specifier) && !/^[a-z]+:/.test(specifier)

let isHooked = false

/** Lets extensions import the library of the program, and packages from their own folder. */
const hookImports = Effect.sync(() => {
  if (isHooked) return
  isHooked = true
  const own = import.meta.url
  registerHooks({
    resolve: (specifier, context, next) => {
      const from = context.parentURL
      if (from === undefined || !isPackage(specifier)) return next(specifier, context)
      const place = [...places.keys()].find((folder) => from.startsWith(folder))
      if (place === undefined) return next(specifier, context)
      if (isOfLibrary(specifier)) {
        const conditions = own.endsWith(".ts")
          ? [...context.conditions, "@effect-deepagents/source"]
          : context.conditions
        return next(specifier, { ...context, conditions, parentURL: own })
      }
      return next(specifier, { ...context, parentURL: places.get(place) ?? from })
    }
  })
})

const nameRule = /^[a-z][a-z0-9-]{0,40}$/

/** Tells why a default export can't be used. */
const problemOf = (value: unknown): string | undefined => {
  if (!Extension.isExtension(value)) return "its default export is no Extension.make(…)"
  if (!nameRule.test(String(value.name))) return "its name is not of small letters, digits and hyphens"
  return Extension.problemOf(value)
}

/** Loads one extension. Fails with a problem. */
export const loadExtension = Effect.fnUntraced(function* (entry: Entry): Effect.fn.Return<LoadedExtension, string> {
  yield* hookImports
  places.set(
    pathToFileURL(`${entry.folder}/`).href,
    entry.packages === undefined ? undefined : pathToFileURL(entry.packages).href
  )
  const { default: extension } = yield* Effect.tryPromise({
    try: (): Promise<{ readonly default?: unknown }> => import(pathToFileURL(entry.file).href),
    catch: (cause) => cut(oneLine(cause instanceof Error ? cause.message : String(cause)), 400)
  }).pipe(Effect.timeoutOrElse({ duration: timeout, orElse: () => Effect.fail("it did not load in time") }))
  const problem = problemOf(extension)
  return problem === undefined && Extension.isExtension(extension)
    ? { extension, entry }
    : yield* Effect.fail(problem ?? "its default export is no Extension.make(…)")
})

/** Loads extensions. A broken extension, or a second extension of one name, is a problem. */
export const loadAll = Effect.fnUntraced(function* (entries: ReadonlyArray<Entry>) {
  const loaded: Array<LoadedExtension> = []
  const problems: Array<string> = []
  for (const entry of entries) {
    const one = yield* Effect.result(loadExtension(entry))
    const leave = (why: string) => problems.push(`the extension ${entry.source} is left out: ${why}`)
    if (Result.isFailure(one)) leave(one.failure)
    else if (loaded.some(({ extension }) => extension.name === one.success.extension.name)) {
      leave(`there is another one with the name ${one.success.extension.name}`)
    } else loaded.push(one.success)
  }
  return { loaded, problems }
})

type ThinkingLevel = NonNullable<Settings["thinking"]>["value"]

type Own = Extension.Extension<Extension.Services>

/** The tools of extensions, without those whose names are taken. */
export const freeTools = (loaded: ReadonlyArray<LoadedExtension>, taken: ReadonlyArray<{ readonly name: string }>) => {
  const names = new Set(taken.map(({ name }) => normaliseName(name)))
  const tools: Array<NonNullable<Own["tools"]>[number]> = []
  const problems: Array<string> = []
  for (const { extension } of loaded) {
    for (const tool of extension.tools ?? []) {
      const name = normaliseName(tool.name)
      if (names.has(name)) {
        problems.push(
          `the extension ${extension.name}: there is a tool ${oneLine(tool.name)} already; its own is left out`
        )
      } else {
        names.add(name)
        tools.push(tool)
      }
    }
  }
  return { tools, problems }
}

/** The services of all extensions, for a session. Services that can't be made cost the extension its tools. */
export const sessionLayer = (loaded: ReadonlyArray<LoadedExtension>): Layer.Layer<never, never, Stdio> =>
  loaded.reduce<Layer.Layer<never, never, Stdio>>(
    (all, { extension }) =>
      Layer.merge(
        all,
        Layer.catchCause(Extension.layerOf(extension), (cause) => {
          const error = Cause.squash(cause)
          const why = oneLine(Predicate.hasProperty(error, "message") ? String(error.message) : String(error))
          return Layer.effectDiscard(tell(`! the extension ${extension.name} has no services: ${cut(why, 400)}`))
        })
      ),
    Layer.empty
  )

/** The model of a provider that an extension brings. `undefined` if none has this name. */
export const extensionModel = (
  loaded: ReadonlyArray<LoadedExtension>,
  settings: Settings,
  spec: string,
  thinking: ThinkingLevel | undefined
): Layer.Layer<ChatModel, Failure> | undefined => {
  const name = normaliseName(spec.split(":")[0] ?? "")
  const provider = loaded
    .flatMap(({ extension }) => extension.providers ?? [])
    .find((one) => normaliseName(one.name) === name)
  return provider === undefined
    ? undefined
    : layerOrFail("noModel")(
        ChatModels.resolve(spec, {
          providers: [provider],
          ...settings.models?.value[spec],
          ...defined({ thinking: thinking ?? settings.thinking?.value })
        })
      )
}

/** The first models of the providers of extensions. */
export const firstModels = (loaded: ReadonlyArray<LoadedExtension>): ReadonlyArray<Choice> =>
  loaded.flatMap(({ extension }) =>
    (extension.providers ?? []).flatMap(({ firstModel, name }) =>
      firstModel === undefined ? [] : [{ name: `${name}:${firstModel}`, description: `of ${extension.name}` }]
    )
  )

const toSaid = (reply: Extension.Reply): CommandOutcome =>
  "send" in reply ? { _tag: "Send", input: String(reply.send) } : { _tag: "Show", markdown: String(reply.show) }

/** The slash commands of extensions: `extension:command`. */
export const commandsOf = (loaded: ReadonlyArray<LoadedExtension>): ReadonlyArray<Command> =>
  loaded.flatMap(({ extension }) =>
    (extension.commands ?? [])
      .filter(({ name }) => /^[\w-]{1,40}$/.test(name))
      .map(({ argument, description, name, run }): Command => ({
        name: `${extension.name}:${name}`,
        description: oneLine(description),
        argument: argument === undefined ? undefined : oneLine(argument),
        // A chat runs commands with the services of its session, which has the services of extensions.
        run: (text) => Effect.map(run(text) as Effect.Effect<Extension.Reply, { readonly message: string }>, toSaid)
      }))
  )

/** Describes the additions of an extension. */
export const gistOf = ({ extension }: LoadedExtension): string => {
  const { commands = [], hooks = [], middleware = [], name: own, providers = [], themes = {}, tools = [] } = extension
  const parts = [
    ...tools.map(({ name }) => `tool ${name}`),
    ...commands.map(({ name }) => `/${own}:${name}`),
    ...providers.map(({ name }) => `models ${name}:…`),
    ...Object.keys(themes).map((name) => `theme ${own}:${name}`),
    ...middleware.map(({ name }) => `middleware ${name}`),
    ...hooks.map(({ event }) => `hook ${event}`)
  ]
  return parts.length === 0 ? "nothing" : cut(oneLine(parts.join(", ")), 200)
}
