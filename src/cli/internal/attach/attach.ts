/** `deepagents attach`: the terminal as a client of a running server. */
import * as Prompt from "effect/cli/Prompt"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
import * as ServerClient from "../../../server/ServerClient.ts"
import { didYouMean } from "../../../support/text/names.ts"
import { visible } from "../../../support/text/untrusted.ts"
import { facts } from "../chat/facts.ts"
import type { SharedFlags } from "../commands/flags.ts"
import { forgetKey, keepKey, keptKey, servers } from "../config/credentials.ts"
import { findKnown, readKnown, serveFolder } from "../config/known.ts"
import type { Places } from "../config/places.ts"
import { fail, Failure, orFail } from "../failure.ts"
import { bindingsWith } from "../input/bindings.ts"
import { tell } from "../output.ts"
import { askPerson } from "../question.ts"
import { processTerminal } from "../screen/terminal.ts"
import type { Context } from "../work/app.ts"
import { lookAt } from "./chat.ts"

interface AttachOptions {
  readonly url: string | undefined
  readonly thread: string | undefined
  readonly tokenFile: string | undefined
  /** Keeps a token in place of a chat, or forgets it. */
  readonly access: "forget" | "keep" | undefined
}

/** The variable of the token. It is another one than that of `serve`, whose secret must not go to a server of others. */
const variable = "DEEPAGENTS_ATTACH_TOKEN"

/** Flags that configure an agent on this machine. A remote agent ignores them, so `attach` refuses them. */
const localFlags = (flags: SharedFlags): ReadonlyArray<string> =>
  Object.entries({
    "--add-dir": flags.addDir.length > 0,
    "--allow": flags.allow.length > 0,
    "--budget": Option.isSome(flags.budget),
    "--demo": flags.demo,
    "--deny": flags.deny.length > 0,
    "--max-turns": Option.isSome(flags.maxTurns),
    "--plain": flags.plain,
    "--thinking": Option.isSome(flags.thinking),
    "--tokens": Option.isSome(flags.tokens),
    "--trust": flags.trust,
    "--yolo": flags.yolo
  }).flatMap(([name, isSet]) => (isSet ? [name] : []))

/** Reads the address: the named one, or that of the server of this folder. */
const addressOf = Effect.fnUntraced(function* (places: Places, url: string | undefined) {
  if (url !== undefined) return url
  const { folder } = yield* serveFolder(places)
  const server = yield* readKnown(folder)
  if (server !== undefined) return server.url
  return yield* fail(
    "usage",
    "No server was started in this folder. Start one: deepagents serve; or name one: deepagents attach https://agents.example.com"
  )
})

const toToken = (text: string, where: string) =>
  /^[!-~]+$/.test(text)
    ? Effect.succeed(Redacted.make(text))
    : fail("usage", `${where}: a token is one word of letters, digits and signs; nothing was sent.`)

/** Reads a token without echo at a terminal, or from a pipe. It is never an argument. */
const readToken = Effect.fnUntraced(function* (origin: string) {
  const stdio = yield* Stdio.Stdio
  if (yield* stdio.stdinIsTerminal) {
    const prompt = askPerson(Prompt.Hidden({ message: `Token of ${origin}` }))
    return yield* Effect.catch(prompt, () => fail("interrupted", "\nNo token was kept."))
  }
  return Redacted.make(yield* orFail("failed")(Stream.mkString(Stream.decodeText(stdio.stdin))))
})

/** Finds the token: of the file, the variable, the server of this machine, or the credentials. */
const tokenOf = Effect.fnUntraced(function* (places: Places, origin: string, { tokenFile }: AttachOptions) {
  if (tokenFile !== undefined) {
    const fs = yield* FileSystem.FileSystem
    const text = yield* orFail("usage", "--token-file: ")(fs.readFileString(tokenFile))
    return yield* toToken(text.trim(), "--token-file")
  }
  const text = process.env[variable] ?? ""
  if (text !== "") return yield* toToken(text.trim(), variable)
  const server = yield* findKnown(places, origin)
  if (server !== undefined && server.token !== "") return Redacted.make(server.token)
  return yield* keptKey(places, origin, servers)
})

/** Adds the next step to the message of a failed request. */
const toFailure = (url: string) => (error: ServerClient.ServerClientError) => {
  const message =
    error.reason === "Unauthorized"
      ? `The server at ${url} does not accept the token, or there is none. Set ${variable}, name a file by --token-file, or keep a token: deepagents attach ${url} --login`
      : error.message
  return new Failure({ exit: error.reason === "Address" ? "usage" : "failed", message: visible(message) })
}

/** Checks a name of the command line against the offers of the server. */
const checkName = (flag: string, name: string | undefined, offered: ReadonlyArray<string>) =>
  name === undefined || offered.includes(name)
    ? Effect.succeed(name)
    : fail("usage", visible(`${flag}: the server does not offer ${JSON.stringify(name)}.${didYouMean(name, offered)}`))

/** Looks at a server until the person leaves. */
export const attach = Effect.fnUntraced(function* (
  { places, settings }: Context,
  flags: SharedFlags,
  options: AttachOptions
) {
  const local = localFlags(flags)
  if (local.length > 0) {
    return yield* fail("usage", `${local.join(", ")}: the agent works on the server, which has settings of its own.`)
  }
  const url = yield* addressOf(places, options.url)
  const fails = Effect.mapError(toFailure(url))
  // The address is checked before a token is read for it.
  yield* fails(ServerClient.make({ url }))
  const { host, origin } = new URL(url)
  if (options.access === "forget") {
    yield* forgetKey(places, origin, servers)
    return yield* tell(`The token of ${origin} is forgotten.`)
  }
  const token =
    options.access === "keep"
      ? yield* Effect.flatMap(readToken(origin), (text) => toToken(Redacted.value(text).trim(), "The token"))
      : yield* tokenOf(places, origin, options)
  const client = yield* fails(ServerClient.make({ url, token }))
  const offers = yield* fails(client.offers)
  if (options.access === "keep" && token !== undefined) {
    yield* keepKey(places, origin, token, servers)
    return yield* tell(`The token of ${origin} is kept. It goes to this server alone.`)
  }
  const { colours, isPlain, isTerminal } = facts()
  if (isPlain || !isTerminal) {
    return yield* fail(
      "usage",
      "This needs a terminal with a screen. Programs read /threads/:id/events: docs/server.md. The page works with screen readers."
    )
  }
  if (options.thread !== undefined) yield* fails(client.status(options.thread))
  const agents = offers.agents.map(({ name }) => name)
  const agent = (yield* checkName("--agent", Option.getOrUndefined(flags.agent), agents)) ?? agents[0]
  if (agent === undefined) return yield* fail("failed", "The server has no agent.")
  return yield* lookAt({
    terminal: processTerminal(),
    client,
    host,
    offers,
    agent,
    model: yield* checkName("--model", Option.getOrUndefined(flags.model), offers.models ?? []),
    mode: yield* checkName("--approvals", Option.getOrUndefined(flags.approvals), offers.modes ?? []),
    thread: options.thread,
    colours: colours && settings.theme?.value !== "none",
    theme: settings.theme?.value ?? "auto",
    bindings: bindingsWith(settings.keys?.value ?? {}),
    isVim: settings.vim?.value === true,
    command: (thread) => visible(`deepagents attach ${url} ${thread}`)
  })
}, Effect.provide(FetchHttpClient.layer))
