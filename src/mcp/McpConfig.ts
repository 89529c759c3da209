/**
 * Servers as data: how each is started or reached, and what of it agents may use.
 *
 * ```ts
 * import { Redacted } from "effect"
 * import type { McpConfig } from "effect-deepagents/mcp"
 *
 * const servers: McpConfig.Servers = {
 *   files: { type: "stdio", command: "npx", args: ["-y", "@modelcontextprotocol/server-filesystem", "/srv/data"] },
 *   tickets: {
 *     type: "http",
 *     url: "https://tickets.example.com/mcp",
 *     headers: { authorization: Redacted.make("Bearer …") },
 *     tools: ["find_ticket"]
 *   }
 * }
 * ```
 */
import type * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"

/** A text that may be a secret. */
export type Secret = string | Redacted.Redacted<string>

/**
 * The settings that all servers have.
 *
 * - `enabled`: `false` leaves the server alone (default `true`)
 * - `tools`: the only tools that agents get, by the server's own names (default: all)
 * - `approval`: the calls that a person is asked about. `annotated` (the default): those of tools that are not annotated
 *   as read-only; `always`; `never`
 * - `sampling`: lets the server ask the run's model: after a person was asked (`ask`), or at once (`allow`). Off if it
 *   is not there
 * - `pins`: the digests that tools must have, by the server's own names (`digest()` of a tool of `McpServers.tools`). A tool that has
 *   another one is left out
 * - `connectTimeout`: milliseconds for start and handshake (default 30,000)
 * - `callTimeout`: milliseconds that a call may take without a sign of life; progress is one, and time in which a person
 *   is asked does not count (default 300,000)
 * - `maxCallTime`: milliseconds that a call may take in all, whatever its signs of life; time in which a person is asked
 *   does not count (default 3,600,000)
 * - `maxDefinition`: bytes of JSON that the name, description and parameters of one tool may have. A larger tool is left
 *   out with a problem of the server's status and a `Warning` (default 32,000)
 * - `maxDefinitions`: bytes of JSON that the definitions of all tools together may have. Tools that come after that are
 *   left out in the same way (default 256,000)
 */
export interface Common {
  readonly enabled?: boolean | undefined
  readonly tools?: ReadonlyArray<string> | undefined
  readonly approval?: "annotated" | "always" | "never" | undefined
  readonly sampling?: "ask" | "allow" | undefined
  readonly pins?: { readonly [tool: string]: string } | undefined
  readonly connectTimeout?: number | undefined
  readonly callTimeout?: number | undefined
  readonly maxCallTime?: number | undefined
  readonly maxDefinition?: number | undefined
  readonly maxDefinitions?: number | undefined
}

/**
 * A server that is started as a process, and spoken to by its standard input and output. `env` is added to what every
 * process needs (`PATH`, `HOME` and the like): nothing else of the environment is passed on.
 */
export interface StdioServer extends Common {
  readonly type: "stdio"
  readonly command: string
  readonly args?: ReadonlyArray<string> | undefined
  readonly env?: { readonly [name: string]: Secret } | undefined
  readonly cwd?: string | undefined
}

/**
 * The client that a server knows, as the files of other programs have it. `scopes` are asked for at first;
 * `callbackPort` is the port of this machine that the client is registered with, and `authServerMetadataUrl` has the
 * metadata of the authorisation server, in the place of those that the server names.
 *
 * With the `grant` `client_credentials` the client signs in for itself, and nobody sees a page. It shows that it is the
 * client by its secret, or by a `privateKey` (PKCS#8, in PEM; `algorithm` is `ES256` if nothing else is said). With
 * `jwt-bearer` it shows a token of somebody else, the `assertion` of `McpOAuth.layer`. `issuer` is the only authorisation
 * server that is told a secret, or shown that token: without it, the MCP server names one.
 */
export interface OAuth {
  readonly clientId?: string | undefined
  readonly clientSecret?: Secret | undefined
  readonly privateKey?: Secret | undefined
  readonly algorithm?: string | undefined
  readonly grant?: "authorization_code" | "client_credentials" | "jwt-bearer" | undefined
  readonly issuer?: string | undefined
  readonly callbackPort?: number | undefined
  readonly authServerMetadataUrl?: string | undefined
  readonly scopes?: ReadonlyArray<string> | undefined
}

/**
 * A server that is reached by HTTP: `http` is the streamable transport (and the older one, if the server has no other),
 * `sse` the older one. A `url` with a key in it should be `Redacted`: then no part of it but its origin is shown. The
 * values behind `?` are secrets in any case.
 */
export interface HttpServer extends Common {
  readonly type: "http" | "sse"
  readonly url: Secret
  readonly headers?: { readonly [name: string]: Secret } | undefined
  readonly oauth?: OAuth | undefined
}

/** A server. */
export type Server = StdioServer | HttpServer

/** Servers by the names that they have in an agent. */
export interface Servers {
  readonly [name: string]: Server
}

const secret = Schema.RedactedFromValue(Schema.String)

const secrets = Schema.Record(Schema.String, secret)

const milliseconds = Schema.Finite.check(Schema.isGreaterThan(0))

const bytes = Schema.Int.check(Schema.isGreaterThan(0))

const common = {
  enabled: Schema.optionalKey(Schema.Boolean),
  tools: Schema.optionalKey(Schema.Array(Schema.String)),
  approval: Schema.optionalKey(Schema.Literals(["annotated", "always", "never"])),
  sampling: Schema.optionalKey(Schema.Literals(["ask", "allow"])),
  pins: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)),
  connectTimeout: Schema.optionalKey(milliseconds),
  callTimeout: Schema.optionalKey(milliseconds),
  maxCallTime: Schema.optionalKey(milliseconds),
  maxDefinition: Schema.optionalKey(bytes),
  maxDefinitions: Schema.optionalKey(bytes)
}

/** A server as JSON. Variables and headers are secrets once they are decoded. */
export const Server = Schema.Union([
  Schema.Struct({
    type: Schema.Literal("stdio"),
    command: Schema.NonEmptyString,
    args: Schema.optionalKey(Schema.Array(Schema.String)),
    env: Schema.optionalKey(secrets),
    cwd: Schema.optionalKey(Schema.String),
    ...common
  }),
  Schema.Struct({
    type: Schema.Literals(["http", "sse"]),
    url: Schema.String,
    headers: Schema.optionalKey(secrets),
    oauth: Schema.optionalKey(
      Schema.Struct({
        clientId: Schema.optionalKey(Schema.String),
        clientSecret: Schema.optionalKey(secret),
        privateKey: Schema.optionalKey(secret),
        algorithm: Schema.optionalKey(Schema.String),
        grant: Schema.optionalKey(Schema.Literals(["authorization_code", "client_credentials", "jwt-bearer"])),
        issuer: Schema.optionalKey(Schema.String),
        callbackPort: Schema.optionalKey(Schema.Int),
        authServerMetadataUrl: Schema.optionalKey(Schema.String),
        scopes: Schema.optionalKey(Schema.Array(Schema.String))
      })
    ),
    ...common
  })
])

/** Servers as JSON. */
export const Servers = Schema.Record(Schema.String, Server)
