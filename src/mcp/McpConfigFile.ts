/**
 * Reads the files in which other programs keep their servers: `.mcp.json` of Claude Code, `mcp.json` of VS Code and of
 * Cursor.
 *
 * ```ts
 * import { NodeServices } from "@effect/platform-node"
 * import { Effect } from "effect"
 * import { McpConfigFile } from "effect-deepagents/mcp"
 *
 * const program = Effect.gen(function* () {
 *   const { servers, warnings } = yield* McpConfigFile.readFile("/srv/project/.mcp.json")
 *   for (const warning of warnings) yield* Effect.logWarning(warning)
 *   return servers
 * }).pipe(Effect.provide(NodeServices.layer))
 * ```
 */
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { fromUnknown, isObject, type Json, type JsonObject } from "../core/Json.ts"
import { TaggedError } from "../support/effect/taggedError.ts"
import { defined } from "../support/json/defined.ts"
import { repeated, toJson } from "../support/json/jsonc.ts"
import { makeEffectCheck } from "../support/options/check.ts"
import { didYouMean } from "../support/text/names.ts"
import { cut } from "../support/text/text.ts"
import { oneLine } from "../support/text/untrusted.ts"
import { expander, type Expand } from "./internal/expand.ts"
import * as shapes from "./internal/shapes.ts"
import { parse as parseJson } from "./internal/wire/framing.ts"
import type { OAuth, Secret, Server, Servers, StdioServer } from "./McpConfig.ts"

/** A file that can't be read, or that is no configuration of servers. */
export class McpConfigError extends TaggedError<McpConfigError>()("McpConfigError", {
  path: Schema.String,
  message: Schema.String,
  cause: Schema.optionalKey(Schema.Defect())
}) {}

/**
 * The program whose file it is: they differ in how variables are written. Claude Code has `${NAME}` and
 * `${NAME:-default}`, the others `${env:NAME}`, `${workspaceFolder}` and `${userHome}`, VS Code `${input:id}` too.
 */
type Dialect = "claude" | "vscode" | "cursor"

/** A value that VS Code asks its user for. */
interface Input {
  readonly id: string
  readonly description: string
  readonly isSecret: boolean
  readonly default: string | undefined
}

/**
 * `dialect` is detected from the path and the contents by default. `workspace` is the directory of the project
 * (default: the file's directory, or the parent of its folder `.vscode` or `.cursor`). `input` provides the values that
 * VS Code asks for. Without a value the default applies, and a server without a default is off.
 */
export interface Options {
  /** The program that the file is for. Default: recognised by path and contents. */
  readonly dialect?: Dialect | undefined
  /**
   * The directory of the project. Default: the directory of the file, or the parent of its folder `.vscode` or
   * `.cursor`.
   */
  readonly workspace?: string | undefined
  /**
   * Gives the values that VS Code would ask for. Default: the default of each input; a server whose input has no
   * default is off.
   */
  readonly input?: ((input: Input) => Effect.Effect<string | undefined>) | undefined
}

/** The servers of a file, and the parts of it that were not understood. */
export interface ParsedFile {
  readonly servers: Servers
  readonly warnings: ReadonlyArray<string>
}

const dialectOf = (path: string, file: JsonObject): Dialect =>
  /(?:^|[\\/])\.cursor[\\/]/u.test(path) ? "cursor" : isObject(file["servers"]) ? "vscode" : "claude"

const isAbsolute = (path: string): boolean => /^(?:[\\/]|[a-z]:)/iu.test(path)

const folderOf = (path: string): string =>
  path.replace(/(?:^|[\\/])[^\\/]*$/u, "").replace(/(?:^|[\\/])\.(?:vscode|cursor)$/u, "") ||
  (isAbsolute(path) ? "/" : ".")

const inputsOf = (file: JsonObject): ReadonlyArray<Input> =>
  (Array.isArray(file["inputs"]) ? file["inputs"] : []).filter(isObject).flatMap((input) => {
    const { default: value, description, id, password } = input
    if (typeof id !== "string") return []
    return {
      id,
      description: typeof description === "string" ? description : id,
      isSecret: password === true,
      default: typeof value === "string" ? value : undefined
    }
  })

/** The fields by which a server is restricted. */
const restricting = ["disabled", "enabled", "tools", "approval", "pins"]

/** The names of all fields that a server, or its `oauth`, can have. */
const knownFields = restricting.concat(
  [
    "type",
    "sampling",
    "connectTimeout",
    "callTimeout",
    "maxCallTime",
    "command",
    "args",
    "env",
    "cwd",
    "url",
    "headers"
  ],
  ["maxDefinition", "maxDefinitions", "oauth", "auth", "clientId", "clientSecret", "privateKey", "algorithm", "grant"],
  ["issuer", "callbackPort", "authServerMetadataUrl", "scopes"]
)

/** Reads the fields of one server, and collects the unknown ones. */
const fieldsOf = (
  server: string,
  raw: JsonObject,
  warnings: Array<string>,
  expand: Expand,
  notes = { isOff: false },
  inside = ""
) => {
  const remaining = new Map(Object.entries(raw))
  const wrong = (name: string, wanted: string): undefined => {
    // A restriction that can't be read would let everything pass.
    const isGuard = inside === "" && restricting.includes(name)
    if (isGuard) notes.isOff = true
    const end = isGuard ? "the server is off until that is corrected" : "it is left out"
    warnings.push(`the server "${server}": "${inside}${name}" must be ${wanted}; ${end}`)
  }
  const take = (name: string): Json | undefined => {
    const value = remaining.get(name)
    remaining.delete(name)
    return value
  }
  const text = (name: string) =>
    Effect.suspend(() => {
      const value = take(name)
      if (value === undefined) return Effect.undefined
      return typeof value === "string" ? expand(value) : Effect.succeed(wrong(name, "a text"))
    })
  const texts = (name: string) =>
    Effect.suspend(() => {
      const value = take(name)
      if (value === undefined) return Effect.undefined
      return Array.isArray(value) && value.every((one) => typeof one === "string")
        ? Effect.forEach(value, expand)
        : Effect.succeed(wrong(name, "a list of texts"))
    })
  const secrets = (name: string): Effect.Effect<{ readonly [name: string]: Secret } | undefined> =>
    Effect.suspend(() => {
      const value = take(name)
      if (value === undefined) return Effect.undefined
      if (!isObject(value)) return Effect.succeed(wrong(name, "an object of texts"))
      return Effect.map(
        // Who writes null wants none.
        Effect.forEach(
          Object.entries(value).filter(([, one]) => one !== null),
          ([key, one]) =>
            Effect.map(
              expand(typeof one === "string" ? one : JSON.stringify(one)),
              (expanded) => [key, Redacted.make(expanded)] as const
            )
        ),
        Object.fromEntries
      )
    })
  const oneOf = <const A extends string | boolean>(name: string, values: ReadonlyArray<A>): A | undefined => {
    const value = take(name)
    if (value === undefined) return undefined
    return values.find((one) => one === value) ?? wrong(name, `one of ${values.join(", ")}`)
  }
  const milliseconds = (name: string): number | undefined => {
    const value = take(name)
    if (value === undefined) return undefined
    return typeof value === "number" && value > 0 ? value : wrong(name, "a number of milliseconds")
  }
  const bytes = (name: string): number | undefined => {
    const value = take(name)
    if (value === undefined) return undefined
    const isCount = typeof value === "number" && Number.isInteger(value) && value > 0
    return isCount ? value : wrong(name, "a number of bytes")
  }
  const object = (name: string): JsonObject | undefined => {
    const value = take(name)
    return value === undefined ? undefined : isObject(value) ? value : wrong(name, "an object")
  }
  const port = (name: string): number | undefined => {
    const value = take(name)
    if (value === undefined) return undefined
    const isPort = typeof value === "number" && Number.isInteger(value) && value > 0 && value < 65_536
    return isPort ? value : wrong(name, "the number of a port")
  }
  const inner = (name: string) => fieldsOf(server, object(name) ?? {}, warnings, expand, notes, `${name}.`)
  const rest = (): void => {
    for (const name of remaining.keys()) {
      const fieldName = `${inside}${cut(oneLine(name), 100)}`
      const hint = didYouMean(name, knownFields)
      warnings.push(`the server "${server}": "${fieldName}" is not a field that is known here; it is left out.${hint}`)
    }
  }
  const isOff = (): boolean => notes.isOff
  return { text, texts, secrets, oneOf, milliseconds, bytes, object, port, inner, rest, take, isOff }
}

type Fields = ReturnType<typeof fieldsOf>

const commonOf = (fields: Fields) =>
  Effect.gen(function* () {
    const isOff = fields.oneOf("disabled", [true, false]) === true || fields.oneOf("enabled", [true, false]) === false
    const pins = fields.object("pins")
    const common: Omit<StdioServer, "type" | "command" | "args" | "env" | "cwd"> = defined({
      enabled: isOff ? false : undefined,
      tools: yield* fields.texts("tools"),
      approval: fields.oneOf("approval", ["annotated", "always", "never"]),
      sampling: fields.oneOf("sampling", ["ask", "allow"]),
      pins:
        pins === undefined
          ? undefined
          : Object.fromEntries(
              // A digest of another type matches no tool.
              Object.entries(pins).map(([name, digest]) => [name, typeof digest === "string" ? digest : ""])
            ),
      connectTimeout: fields.milliseconds("connectTimeout"),
      callTimeout: fields.milliseconds("callTimeout"),
      maxCallTime: fields.milliseconds("maxCallTime"),
      maxDefinition: fields.bytes("maxDefinition"),
      maxDefinitions: fields.bytes("maxDefinitions")
    })
    return common
  })

const words = (value: Json | undefined): ReadonlyArray<string> | undefined =>
  typeof value === "string"
    ? value.split(/\s+/u).filter((word) => word !== "")
    : Array.isArray(value)
      ? value.map(String)
      : undefined

/** The settings of OAuth, as Claude Code and VS Code, or as Cursor write them. */
const oauthOf = (fields: Fields): Effect.Effect<OAuth | undefined> =>
  Effect.gen(function* () {
    const settings = fields.inner("oauth")
    const auth = fields.inner("auth")
    const either = function* (cursors: string, name: string) {
      const [first, second] = [yield* auth.text(cursors), yield* settings.text(name)]
      return first ?? second
    }
    const secret = yield* either("CLIENT_SECRET", "clientSecret")
    const key = yield* settings.text("privateKey")
    const [first, second] = [words(auth.take("scopes")), words(settings.take("scopes"))]
    const oauth = defined({
      clientId: yield* either("CLIENT_ID", "clientId"),
      clientSecret: secret === undefined ? undefined : Redacted.make(secret),
      privateKey: key === undefined ? undefined : Redacted.make(key),
      algorithm: yield* settings.text("algorithm"),
      grant: settings.oneOf("grant", ["authorization_code", "client_credentials", "jwt-bearer"]),
      issuer: yield* settings.text("issuer"),
      callbackPort: settings.port("callbackPort"),
      authServerMetadataUrl: yield* settings.text("authServerMetadataUrl"),
      scopes: first ?? second
    })
    settings.rest()
    auth.rest()
    return Object.keys(oauth).length === 0 ? undefined : oauth
  })

/** A variable that may be a key: one of the environment or of an input, and not the name of a place. */
const filled = /\$\{(?!(?:workspaceFolder|workspaceFolderBasename|userHome|pathSeparator|\/)\})/u

const httpTypes = ["http", "streamable-http", "streamableHttp"]

const kindOf = (type: Json | undefined, raw: JsonObject): Json => {
  if (type === undefined) return "command" in raw ? "stdio" : "http"
  return typeof type === "string" && httpTypes.includes(type) ? "http" : type
}

const stdioServer = (fields: Fields) =>
  Effect.gen(function* () {
    const command = yield* fields.text("command")
    const rest = defined({
      args: yield* fields.texts("args"),
      env: yield* fields.secrets("env"),
      cwd: yield* fields.text("cwd")
    })
    // Settings for developers of the server.
    fields.take("dev")
    return command === undefined || command === "" ? undefined : { type: "stdio" as const, command, ...rest }
  })

const remoteServer = (type: "http" | "sse", fields: Fields, raw: JsonObject) =>
  Effect.gen(function* () {
    const rawUrl = raw["url"]
    const expanded = yield* fields.text("url")
    const isFilled = typeof rawUrl === "string" && expanded !== rawUrl && filled.test(rawUrl)
    const url = expanded === undefined || !isFilled ? expanded : Redacted.make(expanded)
    const headers = yield* fields.secrets("headers")
    const oauth = yield* oauthOf(fields)
    return url === undefined ? undefined : { type, url, ...defined({ headers, oauth }) }
  })

/** Says why a server is left out. */
const problemOf = (type: Json | undefined, kind: Json): string => {
  if (type === undefined) return "neither a command nor a url"
  if (kind === "stdio") return "no command"
  if (kind === "http" || kind === "sse") return "no url"
  return `the type ${cut(oneLine(JSON.stringify(type)), 100)}, which is not stdio, http or sse`
}

/** Reads a server. An unusable one is left out. */
const serverOf = (name: string, raw: JsonObject, warnings: Array<string>, expand: Expand) =>
  Effect.gen(function* () {
    const fields = fieldsOf(name, raw, warnings, expand)
    const type = fields.take("type")
    const kind = kindOf(type, raw)
    const common = yield* commonOf(fields)
    const isRemote = kind === "http" || kind === "sse"
    const own =
      kind === "stdio" ? yield* stdioServer(fields) : isRemote ? yield* remoteServer(kind, fields, raw) : undefined
    if (kind === "stdio" || isRemote) fields.rest()
    if (own === undefined) {
      warnings.push(`the server "${name}" has ${problemOf(type, kind)}; it is left out`)
      return undefined
    }
    const server: Server = { ...own, ...common }
    return fields.isOff() ? { ...server, enabled: false } : server
  })

const refuse = makeEffectCheck("McpConfigFile", shapes.mcpConfigFileParse, (where, problem) =>
  Effect.fail(new McpConfigError({ path: where, message: `${where}: ${problem}` }))
)

/**
 * Reads the text of a file, JSON with comments. Variables are looked up in the environment (the `ConfigProvider`). What
 * is not understood is a warning; fails if the text is no such file at all.
 */
export const parse = (path: string, text: string, options: Options = {}): Effect.Effect<ParsedFile, McpConfigError> =>
  refuse(options) ??
  Effect.gen(function* () {
    const json = toJson(text)
    const result = parseJson(json)
    if (Result.isFailure(result)) {
      const message = `${path} is not JSON: ${String(result.failure)}; correct it there`
      return yield* new McpConfigError({ path, message, cause: result.failure })
    }
    const file = fromUnknown(result.success)
    const lists = isObject(file) ? [file["mcpServers"], file["servers"]].filter(isObject) : []
    if (!isObject(file) || lists.length === 0) {
      const message = `${path} has no "mcpServers" or "servers", with an object of servers by their names`
      return yield* new McpConfigError({ path, message })
    }
    const warnings = repeated(json).map(
      (name) => `"${cut(oneLine(name), 100)}" stands twice in one place of ${path}; the last one counts`
    )
    const listed = new Map<string, Json>()
    for (const [name, raw] of lists.flatMap((list) => Object.entries(list))) {
      if (listed.has(name)) warnings.push(`the server "${name}" is in "mcpServers" and in "servers"; the first counts`)
      else listed.set(name, raw)
    }
    for (const name of Object.keys(file)) {
      if (!["mcpServers", "servers", "inputs", "$schema"].includes(name)) {
        warnings.push(`"${cut(oneLine(name), 100)}" of ${path} is not a field that is known here; it is left out`)
      }
    }
    const env = (name: string): Effect.Effect<string | undefined> =>
      Effect.map(Effect.option(Config.String(name)), Option.getOrUndefined)
    const inputs = new Map(inputsOf(file).map((input) => [input.id, input]))
    const servers: Array<readonly [string, Server]> = []
    for (const [name, raw] of listed) {
      if (!isObject(raw)) {
        warnings.push(`the server "${name}" must be an object; it is left out`)
        continue
      }
      const missing = new Set<string>()
      const expand = expander({
        dialect: options.dialect ?? dialectOf(path, file),
        workspace: options.workspace ?? folderOf(path),
        env,
        input: (id) => {
          const input = inputs.get(id)
          if (input === undefined) return Effect.undefined
          return Effect.map(options.input?.(input) ?? Effect.undefined, (value) => value ?? input.default)
        },
        missing: (variable) => void missing.add(variable)
      })
      const server = yield* serverOf(name, raw, warnings, expand)
      const missingInputs = [...missing].filter((variable) => variable.startsWith("input:"))
      for (const variable of missing) {
        const end = variable.startsWith("input:") ? "; the server is off" : " is not set: it stays as it is written"
        warnings.push(`the server "${name}": \${${variable}}${end}`)
      }
      if (server !== undefined) servers.push([name, missingInputs.length > 0 ? { ...server, enabled: false } : server])
    }
    return { servers: Object.fromEntries(servers), warnings }
  })

/** Reads a file. */
export const readFile = (
  path: string,
  options?: Options
): Effect.Effect<ParsedFile, McpConfigError, FileSystem.FileSystem> =>
  refuse(options) ??
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const text = yield* Effect.mapError(
      files.readFileString(path),
      (cause) => new McpConfigError({ path, message: `${path} can't be read: ${cause.message}`, cause })
    )
    // Programs are started elsewhere: a path that leads to a file from here does not from there.
    const workspace = isAbsolute(path)
      ? undefined
      : yield* Effect.orElseSucceed(files.realPath(folderOf(path)), () => undefined)
    return yield* parse(path, text, { ...defined({ workspace }), ...options })
  })
