/** `deepagents serve`: the agent of a folder behind HTTP, for the page and for programs. Its runs outlive their readers. */
import { createServer } from "node:http"
import { isIP } from "node:net"
import { networkInterfaces } from "node:os"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as ContextOf from "effect/Context"
import * as SecureRandom from "effect/crypto/SecureRandom"
import * as Effect from "effect/Effect"
import * as Base64Url from "effect/encoding/Base64Url"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServer from "effect/http/HttpServer"
import * as Layer from "effect/Layer"
import * as NetAddress from "effect/net/NetAddress"
import * as Redacted from "effect/Redacted"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
import * as Server from "../../../server/Server.ts"
import { sha256 } from "../../../support/store/hash.ts"
import { visible } from "../../../support/text/untrusted.ts"
import { knownFile, readKnown, writeKnown } from "../config/known.ts"
import { type Failure, fail } from "../failure.ts"
import { print } from "../output.ts"
import { type Context, type Services, sessions } from "../work/app.ts"
import { openPage } from "../work/browser.ts"
import { openRuns } from "../work/served.ts"

export interface ServeOptions {
  readonly host: string
  readonly port: number
  /** Names by which others reach the server, beside its addresses. */
  readonly names: ReadonlyArray<string>
  /** Opens the page in the browser of the machine. */
  readonly opens: boolean
}

const isLoopback = (host: string): boolean => host === "localhost" || host === "::1" || host.startsWith("127.")

/** Reads the token of the last server of the folder, or makes one. A session of a page outlives a restart by it. */
const readToken = Effect.fnUntraced(function* (folder: string) {
  const { token = "" } = (yield* readKnown(folder)) ?? {}
  // A server with a secret of its own has none in the file.
  return token === "" ? Base64Url.encode(SecureRandom.randomBytesUnsafe(32)) : token
})

const shortest = 16

/** The characters of a bearer token. */
const sendable = /^[\w\-.~+/=]+$/

/** Recognises requests by the token of the environment. It compares hashes, so that the time tells nothing. */
const bearerOf = Effect.fnUntraced(function* (token: string, tenant: string) {
  const expected = yield* sha256(token)
  return Server.bearer({
    verify: (given) =>
      Effect.flatMap(sha256(Redacted.value(given)), (hash) =>
        hash === expected
          ? Effect.succeed({ tenant, id: "token", roles: ["operator"] })
          : Effect.fail(new Server.Unauthorized())
      )
  })
})

const refuseOpen = (host: string): Effect.Effect<never, Failure> =>
  fail(
    "usage",
    `Other machines reach ${host}: set DEEPAGENTS_SERVE_TOKEN to a secret of at least ${shortest} characters, which they send as Authorization: Bearer …. Whoever has it runs commands here as you. Without --host, only this machine reaches the server.`
  )

/** The names by which requests may reach the server. */
const hostsOf = ({ host, names }: ServeOptions): ReadonlyArray<string> => {
  const own = isLoopback(host)
    ? []
    : Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map(({ address }) => address))
  const addresses = [host, ...own].map((one) => (isIP(one) === 6 ? `[${one}]` : one))
  return ["localhost", "127.0.0.1", "[::1]", ...addresses, ...names]
}

/** Prints a link to the page for each line of the standard input, and opens the first one if asked to. */
const printLinks = Effect.fnUntraced(function* (
  url: string,
  { issue }: Server.Auth["Service"],
  open: (address: string) => Effect.Effect<void, never, Services>
) {
  if (issue === undefined) return
  yield* Effect.forkScoped(Effect.flatMap(issue, (token) => open(`${url}/#t=${Redacted.value(token)}`)))
  const stdio = yield* Stdio.Stdio
  const link = Effect.flatMap(issue, (token) =>
    print(`Open ${url}/#t=${Redacted.value(token)} within a minute; press Enter for a new link.`)
  )
  yield* link
  yield* Effect.ignore(Stream.runForEach(Stream.splitLines(Stream.decodeText(stdio.stdin)), () => link))
})

/** The failure of a server that can't listen. */
const layerOfFailure = (
  error: { readonly _tag: string; readonly message: string; readonly cause?: unknown },
  { host, port }: ServeOptions
) => {
  const reason = error._tag === "ServeError" && error.cause instanceof Error ? error.cause.message : error.message
  return Layer.effectContext(
    fail(
      "failed",
      `The server can't listen on ${host}, port ${port}: ${visible(reason)}. Take another --port or --host.`
    )
  )
}

/** Serves the agent of the folder until it is ended. */
export const serve = Effect.fnUntraced(
  function* (given: Context, options: ServeOptions) {
    const { places } = given
    if (options.port < 0 || options.port > 65_535) return yield* fail("usage", "--port: a port is 0 to 65535.")
    const open = !isLoopback(options.host)
    const secret = process.env["DEEPAGENTS_SERVE_TOKEN"] ?? ""
    if (open && secret.length < shortest) return yield* refuseOpen(options.host)
    if (open && !sendable.test(secret)) {
      return yield* fail("usage", "DEEPAGENTS_SERVE_TOKEN: a token has letters, digits and - . _ ~ + / =.")
    }
    const { app, apps, database, files, folder, runs, tenant } = yield* openRuns(given)
    const token = yield* readToken(folder)
    const auth = open ? yield* bearerOf(secret, tenant) : Server.loopback({ token: Redacted.make(token), tenant })
    const routes = Server.http({
      page: true,
      hosts: hostsOf(options),
      files: () => Effect.succeed(files),
      ...(apps === undefined ? {} : { apps: () => Effect.succeed(apps) })
    }).pipe(Layer.provide(runs), Layer.provideMerge(auth))
    const server = HttpRouter.serve(routes, {
      disableLogger: true,
      disableListenLog: true
    }).pipe(
      Layer.provideMerge(
        NodeHttpServer.layer(createServer, {
          host: options.host,
          port: options.port,
          gracefulShutdownTimeout: "1 second"
        })
      ),
      Layer.catch((error) => layerOfFailure(error, options))
    )
    const services = yield* Layer.build(server)
    const { address } = ContextOf.get(services, HttpServer.HttpServer)
    const port = NetAddress.isInetAddress(address) ? address.port : options.port
    const url = `http://${isIP(options.host) === 6 ? `[${options.host}]` : options.host}:${port}`
    yield* writeKnown(folder, { url, token: open ? "" : token })
    yield* print(
      `Serving ${visible(places.project)} by ${visible(app.name)} (${visible(app.model)}) at ${url}`,
      open
        ? "Requests need the token of DEEPAGENTS_SERVE_TOKEN."
        : `Programs find the address and their token in ${knownFile(folder)}`,
      ...(database === undefined ? [] : [`Threads are in ${visible(database.name)}`])
    )
    const openLink = (address: string) => (options.opens ? openPage(places, folder, address) : Effect.void)
    yield* printLinks(url, ContextOf.get(services, Server.Auth), openLink)
    return yield* Effect.never
  },
  Effect.scoped,
  (effect, { places }: Context) => Effect.provide(effect, sessions(places))
)
