/**
 * Servers as data: the command or address of each, and the parts that agents may use.
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
 * - `approval`: the calls that a person is asked about. `annotated` (the default): calls of tools that are not
 *   annotated as read-only; `always`; `never`
 * - `sampling`: lets the server ask the run's model: after a person agreed (`ask`), or immediately (`allow`). Off by
 *   default
 * - `pins`: the required digests of tools, by the server's own names (`digest()` of a tool of `McpServers.tools`). A
 *   tool with another digest is left out
 * - `connectTimeout`: milliseconds for start and handshake (default 30,000)
 * - `callTimeout`: milliseconds of a call without a sign of life, such as progress. Waiting for a person does not count
 *   (default 300,000)
 * - `maxCallTime`: milliseconds of a whole call. Waiting for a person does not count (default 3,600,000)
 * - `maxDefinition`: bytes of JSON for the name, description and parameters of one tool. A larger tool is left out,
 *   with a problem in the server's status and a `Warning` (default 32,000)
 * - `maxDefinitions`: bytes of JSON for the definitions of all tools together. Further tools are left out in the same
 *   way (default 256,000)
 */
interface Common {
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
 * The client that a server knows, as in the files of other programs. `scopes` are requested first. `callbackPort` is
 * the registered port of this machine. `authServerMetadataUrl` locates the metadata of the authorisation server,
 * instead of the server's own statement.
 *
 * With the `grant` `client_credentials` the client signs in for itself, without a page. It proves its identity by its
 * secret, or by a `privateKey` (PKCS#8, in PEM; `algorithm` is `ES256` by default). With `jwt-bearer` it presents a
 * token of somebody else, the `assertion` of `McpOAuth.layer`. Only the authorisation server `issuer` gets the secret
 * or that token. Without `issuer`, the MCP server names it.
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
