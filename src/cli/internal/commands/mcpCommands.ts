/** `deepagents mcp`: lists, adds, signs in to and tests servers. */
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type * as Stdio from "effect/Stdio"
import type * as McpConfig from "../../../mcp/McpConfig.ts"
import { suggestion } from "../../../support/text/near.ts"
import { visible } from "../../../support/text/untrusted.ts"
import { findItems } from "../config/items.ts"
import { userServers } from "../config/places.ts"
import { findServers, type FoundServer, serversLayer, tried } from "../config/servers.ts"
import { readRecord } from "../config/settings.ts"
import { answer, writePrivate } from "../config/trust.ts"
import { fail } from "../failure.ts"
import { print, printJson, table, tell } from "../output.ts"
import type { Context } from "../work/app.ts"

const loadServers = Effect.fnUntraced(function* ({ places, project }: Context) {
  const all = yield* findServers(places, project)
  for (const problem of all.problems) yield* tell(`! ${visible(problem)}`)
  return all.servers
})

const findByName = (servers: ReadonlyArray<FoundServer>, name: string) => {
  const one = servers.find((server) => server.name === name)
  return one === undefined
    ? fail(
        "usage",
        servers.length === 0
          ? "There is no server yet: deepagents mcp add"
          : `There is no server ${JSON.stringify(name)}. ${suggestion(
              name,
              servers.map((server) => server.name)
            )}`
      )
    : Effect.succeed(one)
}

/** The host of an address. A secret address that can't be read has no host. */
const hostOf = (url: McpConfig.Secret): string => {
  const host = URL.parse(Redacted.isRedacted(url) ? Redacted.value(url) : url)?.host
  return host ?? (Redacted.isRedacted(url) ? "an address that can't be read" : url)
}

/** The display address of a server. Arguments and addresses may contain secrets, so they are left out. */
const whereOf = ({ server }: FoundServer): string => (server.type === "stdio" ? server.command : hostOf(server.url))

export const list = Effect.fnUntraced(function* (context: Context, asJson: boolean) {
  const servers = yield* loadServers(context)
  if (asJson) {
    return yield* printJson(
      servers.map((one) => {
        const { file, name, origin, server } = one
        return { name, type: server.type, at: whereOf(one), enabled: server.enabled !== false, origin, file }
      })
    )
  }
  if (servers.length === 0) return yield* tell("There is no server: deepagents mcp add NAME -- COMMAND, or a URL")
  return yield* print(
    ...table(
      servers.map((one) => [
        one.name,
        one.server.enabled === false ? "off" : one.server.type,
        whereOf(one),
        `${one.origin} (${one.file})`
      ])
    )
  )
})

export interface AddedServer {
  readonly name: string
  readonly at: string
  readonly args: ReadonlyArray<string>
  readonly env: ReadonlyArray<string>
  readonly headers: ReadonlyArray<string>
  readonly project: boolean
}

/** Parses `NAME=value`, or `NAME` for the value of the environment at start. */
const envOf = (given: string): readonly [string, string] => {
  const at = given.indexOf("=")
  return at < 0 ? [given, `\${${given}}`] : [given.slice(0, at), given.slice(at + 1)]
}

const headerOf = (given: string) => {
  const at = given.indexOf(":")
  return at < 1
    ? fail("usage", `--header is ${JSON.stringify(given.slice(0, 40))}; expected "name: value"`)
    : Effect.succeed([given.slice(0, at).trim(), given.slice(at + 1).trim()] as const)
}

export const add = Effect.fnUntraced(function* (
  { places }: Context,
  { args, at, env, headers, name, project }: AddedServer
) {
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(name)) {
    return yield* fail("usage", `${JSON.stringify(name)} is no name of a server: letters, digits, ".", "_" and "-"`)
  }
  const isUrl = /^https?:\/\//.test(at)
  if (isUrl && (args.length > 0 || env.length > 0)) return yield* fail("usage", "A URL has no arguments and no --env.")
  if (!isUrl && headers.length > 0) return yield* fail("usage", "--header is for a server at a URL.")
  const file = project ? join(places.project, ".mcp.json") : userServers(places)
  const before = yield* readRecord(file)
  const key = before["mcpServers"] === undefined && before["servers"] !== undefined ? "servers" : "mcpServers"
  const listed = before[key] ?? {}
  if (typeof listed !== "object" || listed === null || Array.isArray(listed)) {
    return yield* fail("usage", `${file}: ${key} should be an object of servers by their names`)
  }
  if (Object.hasOwn(listed, name)) return yield* fail("usage", `${file} has a server ${name}; change it there`)
  const pairs = yield* Effect.forEach(headers, headerOf)
  const server = isUrl
    ? { type: "http", url: at, ...(pairs.length > 0 ? { headers: Object.fromEntries(pairs) } : {}) }
    : { type: "stdio", command: at, args, ...(env.length > 0 ? { env: Object.fromEntries(env.map(envOf)) } : {}) }
  const after = { ...before, [key]: { ...listed, [name]: server } }
  yield* writePrivate(file, `${JSON.stringify(after, null, 2)}\n`)
  if (project) {
    const items = yield* findItems(places.project)
    // Whoever adds a server trusts it.
    yield* answer(
      places,
      items.filter((item) => item.kind === "MCP server" && item.file === ".mcp.json" && item.name === name),
      true
    )
  }
  return yield* tell(`Added to ${file}. Try it: deepagents mcp test ${name}`)
})

/** Signs the person in by a page that `show` announces, and stores the tokens. */
export const signIn = Effect.fnUntraced(function* (
  context: Context,
  name: string,
  isDevice: boolean,
  show: (lines: ReadonlyArray<string>) => Effect.Effect<void>
) {
  const { places } = context
  const one = yield* Effect.flatMap(loadServers(context), (servers) => findByName(servers, name))
  if (one.server.type === "stdio") {
    return yield* fail("usage", `${name} is a process and needs no sign-in. Give it its key by "env".`)
  }
  const { signingIn } = yield* Effect.promise(() => import("../config/signIn.ts"))
  // The person has five minutes at the page.
  const patient = { ...one, server: { ...one.server, enabled: true, connectTimeout: 310_000 } }
  const [result] = yield* Effect.provide(tried, serversLayer(places, [patient], signingIn(places, isDevice, show)))
  return result?.status.state === "connected"
    ? result
    : yield* fail("failed", result?.problem ?? `${name} could not be reached`)
})

export const login = Effect.fnUntraced(function* (context: Context, name: string, isDevice: boolean) {
  const stdio = yield* Effect.context<Stdio.Stdio>()
  const result = yield* signIn(context, name, isDevice, (lines) => Effect.provideContext(tell(...lines), stdio))
  return yield* tell(`${name} is connected: ${result.tools.length} tools.`)
})

export const test = Effect.fnUntraced(function* (context: Context, name: string | undefined, asJson: boolean) {
  const servers = yield* loadServers(context)
  const selection =
    name === undefined
      ? servers
      : [yield* Effect.map(findByName(servers, name), (one) => ({ ...one, server: { ...one.server, enabled: true } }))]
  if (selection.length === 0) return yield* tell("There is no server: deepagents mcp add NAME -- COMMAND, or a URL")
  const results = yield* Effect.provide(tried, serversLayer(context.places, selection))
  if (asJson) {
    yield* printJson(
      results.map(({ problem, status, tools }) => ({
        name: status.name,
        state: status.state,
        problem: problem ?? null,
        tools: tools.map((tool) => tool.name)
      }))
    )
  } else {
    const rows = results.map(({ problem, status, tools }) => [
      problem === undefined ? "✓" : "✗",
      status.name,
      problem ?? `${tools.length} tools: ${tools.map(({ tool }) => tool).join(", ")}`
    ])
    yield* print(...table(rows))
    for (const { problem, status } of results) {
      if (problem !== undefined && status.log.trim() !== "")
        yield* tell(`${status.name}: ${visible(status.log.trim())}`)
    }
  }
  return results.every(({ problem }) => problem === undefined)
    ? undefined
    : yield* fail("failed", asJson ? "" : "Some servers can't be used: see ✗ above.")
})
