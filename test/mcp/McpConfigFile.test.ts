import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as fc from "fast-check"
import { McpConfig, McpConfigFile } from "../../src/mcp/index.ts"
import { toJson } from "../../src/support/json/jsonc.ts"
import { scaled } from "../scale.ts"

const environment = ConfigProvider.layer(
  ConfigProvider.fromUnknown({ HOME: "/home/ada", TOKEN: "s3cret", EMPTY_NOT: "x" })
)

const parse = (path: string, text: string, options?: McpConfigFile.Options) =>
  Effect.provide(McpConfigFile.parse(path, text, options), environment)

const revealSecret = (secret: McpConfig.Secret | undefined) =>
  secret === undefined ? undefined : Redacted.isRedacted(secret) ? Redacted.value(secret) : secret

describe("McpConfigFile", () => {
  it.effect("says which servers, and which of their fields, stand twice", () =>
    Effect.gen(function* () {
      const { servers, warnings } = yield* parse(
        "/p/.mcp.json",
        `{ // {"x": 1, "x": 2} in a comment is no duplicate key
          "mcpServers": {
            "a": { "command": "first" },
            "b": { "command": "x", "args": ["{\\"k\\": 1, \\"k\\": 2}", "same", "same"], "env": { "command": "y" } },
            "\\u0061": { "command": "second" }
          },
          "servers": { "b": { "command": "other" }, "c": { "command": "third" } }
        }`
      )
      assert.deepStrictEqual(Object.keys(servers), ["a", "b", "c"])
      assert.deepInclude(servers["a"], { command: "second" })
      assert.deepInclude(servers["b"], { command: "x" })
      assert.deepStrictEqual(warnings, [
        '"a" stands twice in one place of /p/.mcp.json; the last one counts',
        'the server "b" is in "mcpServers" and in "servers"; the first counts'
      ])
    })
  )

  it.effect("reads a file of Claude Code", () =>
    Effect.gen(function* () {
      const { servers, warnings } = yield* parse(
        "/p/.mcp.json",
        `{ "mcpServers": {
          "a": { "command": "\${TOOL:-npx}", "args": ["-y", "\${TOKEN}", "$TOKEN", "\${UNSET}"], "env": { "KEY": "\${TOKEN}" } },
          "b": { "type": "http", "url": "https://x.example/mcp", "headers": { "Authorization": "Bearer \${TOKEN}" },
                 "oauth": { "clientId": "c", "callbackPort": 8080, "scopes": "read write" }, "headersHelper": "x.sh" },
          "c": { "type": "ws", "url": "wss://x.example" },
          "d": { "command": "x", "disabled": true, "tools": ["one"], "approval": "never" }
        }, "other": 1 }`
      )
      assert.deepInclude(servers["a"], { type: "stdio", command: "npx", args: ["-y", "s3cret", "$TOKEN", "${UNSET}"] })
      const { a, b } = servers
      assert.strictEqual(a?.type === "stdio" ? revealSecret(a.env?.["KEY"]) : "", "s3cret")
      assert.strictEqual(b?.type === "http" ? revealSecret(b.headers?.["Authorization"]) : "", "Bearer s3cret")
      assert.deepStrictEqual(b?.type === "http" ? b.oauth : undefined, {
        clientId: "c",
        callbackPort: 8080,
        scopes: ["read", "write"]
      })
      assert.notInclude(JSON.stringify(servers["b"]), "s3cret")
      assert.deepInclude(servers["d"], { enabled: false, tools: ["one"], approval: "never" })
      assert.notProperty(servers, "c")
      assert.deepStrictEqual(
        ["other", "UNSET", "headersHelper", '"c" has the type "ws"'].filter(
          (word) => !warnings.some((warning) => warning.includes(word))
        ),
        []
      )
      assert.strictEqual(warnings.length, 4)
    })
  )

  it.effect("reads a file of VS Code, with comments, and asks for its inputs", () =>
    Effect.gen(function* () {
      const text = `{
        // values to ask the user for
        "inputs": [{ "type": "promptString", "id": "key", "description": "API key", "password": true },],
        "servers": {
          "a": { "type": "stdio", "command": "\${workspaceFolder}/run", "args": ["\${env:TOKEN}", "// no comment"], "dev": { "watch": "*" }, },
          /* by an input */
          "b": { "type": "http", "url": "https://x.example/\${input:key}" },
        },
      }`
      const { servers, warnings } = yield* parse("/p/.vscode/mcp.json", text)
      assert.deepStrictEqual(servers["a"], {
        type: "stdio",
        command: "/p/run",
        args: ["s3cret", "// no comment"]
      })
      assert.strictEqual(servers["b"]?.enabled, false)
      assert.deepStrictEqual(warnings, ['the server "b": ${input:key}; the server is off'])
      const asked = yield* parse("/p/.vscode/mcp.json", text, {
        input: ({ description, isSecret }) => Effect.succeed(isSecret ? `${description.length}` : undefined)
      })
      assert.deepStrictEqual(asked.servers["b"], { type: "http", url: Redacted.make("https://x.example/7") })
      assert.deepStrictEqual(asked.warnings, [])
    })
  )

  it.effect.each<readonly [string, string, NonNullable<McpConfigFile.Options["dialect"]>]>([
    ["/p/.vscode/mcp.json", "/p", "vscode"],
    [".vscode/mcp.json", ".", "vscode"],
    ["p/.vscode/mcp.json", "p", "vscode"],
    ["mcp.json", ".", "vscode"],
    ["/mcp.json", "/", "vscode"],
    ["/.cursor/mcp.json", "/", "cursor"],
    [".cursor/mcp.json", ".", "cursor"],
    ["C:\\p\\.vscode\\mcp.json", "C:\\p", "vscode"]
  ])("the project of %s is %s", ([path, folder, kind]) =>
    Effect.gen(function* () {
      const list = kind === "cursor" ? "mcpServers" : "servers"
      const text = JSON.stringify({ [list]: { a: { command: "${workspaceFolder}" } } })
      const { servers, warnings } = yield* parse(path, text)
      assert.deepInclude(servers["a"], { command: folder })
      assert.deepStrictEqual(warnings, [])
    })
  )

  it.effect("a file by a path from here has a project whose path is whole", () =>
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const folder = yield* files.makeTempDirectoryScoped({ directory: ".", prefix: "zz-mcp-" })
      const path = `${folder.replace(`${process.cwd()}/`, "")}/mcp.json`
      yield* files.writeFileString(path, JSON.stringify({ servers: { a: { command: "${workspaceFolder}/run" } } }))
      const { servers } = yield* McpConfigFile.readFile(path)
      assert.deepInclude(servers["a"], { command: `${yield* files.realPath(folder)}/run` })
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )

  it.effect("defaults with braces, and variables that are null", () =>
    Effect.gen(function* () {
      const { servers, warnings } = yield* parse(
        "/p/.mcp.json",
        JSON.stringify({
          mcpServers: { a: { command: "x", args: ['${UNSET:-{"a":1}}'], env: { A: null, B: "b" } } }
        })
      )
      const { a } = servers
      assert.deepInclude(a, { args: ['{"a":1}'] })
      assert.deepStrictEqual(a?.type === "stdio" ? Object.keys(a.env ?? {}) : [], ["B"])
      assert.deepStrictEqual(warnings, [])
    })
  )

  it.effect("reads a file of Cursor", () =>
    Effect.gen(function* () {
      const { servers, warnings } = yield* parse(
        "/home/ada/.cursor/mcp.json",
        `{ "mcpServers": { "a": { "url": "https://x.example/\${workspaceFolderBasename}",
          "auth": { "CLIENT_ID": "\${env:TOKEN}", "scopes": ["r"] } }, "b": { "command": "\${userHome}/run" } } }`
      )
      assert.deepStrictEqual(servers, {
        a: { type: "http", url: "https://x.example/ada", oauth: { clientId: "s3cret", scopes: ["r"] } },
        b: { type: "stdio", command: "/home/ada/run" }
      })
      assert.deepStrictEqual(warnings, [])
    })
  )

  it.effect(
    "switches a server off if a restricting field is invalid, and suggests names for other misspelt fields",
    () =>
      Effect.gen(function* () {
        const wrong = [
          '"disabled": "true"',
          '"enabled": 0',
          '"tools": "find"',
          '"approval": "allways"',
          '"pins": ["a"]'
        ]
        for (const field of wrong) {
          const { servers, warnings } = yield* parse("/x", `{"mcpServers": {"a": {"command": "node", ${field}}}}`)
          assert.strictEqual(servers["a"]?.enabled, false, field)
          assert.match(warnings.join("\n"), /must be .*; the server is off until that is corrected/)
        }
        const { servers, warnings } = yield* parse(
          "/x",
          `{"mcpServers": {
          "a": {"comand": "node", "arg": []},
          "b": {"type": "htpp", "url": "http://x"},
          "c": {"url": "http://x", "approvel": "always", "oauth": {"clientID": "x", "grant": "client_credential", "callbackPort": "80"}},
          "d": {"url": "http://x", "oauth": {"clientId": "x", "grant": "jwt-bearer"}}
        }}`
        )
        assert.deepStrictEqual(Object.keys(servers), ["c", "d"])
        assert.deepStrictEqual(servers["d"], {
          type: "http",
          url: "http://x",
          oauth: { clientId: "x", grant: "jwt-bearer" }
        })
        for (const words of [
          /"a".*"comand".*Did you mean "command"/,
          /"a".*"arg".*Did you mean "args"/,
          /"a" has neither a command nor a url; it is left out/,
          /"b" has the type "htpp", which is not stdio, http or sse/,
          /"c".*"approvel".*Did you mean "approval"/,
          /"c".*"oauth\.clientID".*Did you mean "clientId"/,
          /"c".*"oauth\.grant" must be one of authorization_code, client_credentials, jwt-bearer/,
          /"c".*"oauth\.callbackPort" must be the number of a port/
        ]) {
          assert.isTrue(
            warnings.some((warning) => words.test(warning)),
            `${words}\n${warnings.join("\n")}`
          )
        }
      })
  )

  it.effect("reports the problem of an invalid file", () =>
    Effect.gen(function* () {
      assert.match((yield* Effect.flip(parse("/x", "{"))).message, /\/x is not JSON/)
      assert.match((yield* Effect.flip(parse("/x", "[]"))).message, /has no "mcpServers" or "servers"/)
      const { servers, warnings } = yield* parse("/x", `{"mcpServers": {"a": 1, "b": {"args": 1}}}`)
      assert.deepStrictEqual(Object.keys(servers), [])
      assert.isAtLeast(warnings.length, 2)
    })
  )

  it("keeps JSON unchanged but for comments and trailing commas", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.boolean(), (value, pretty) => {
        const text = JSON.stringify(value, undefined, pretty ? 2 : 0)
        assert.deepStrictEqual(JSON.parse(toJson(text)), JSON.parse(text))
        const commented = text.replaceAll(/^( *)/gmu, '$1/* "," */ ').replaceAll(/\n/gu, " // ]\n")
        if (pretty && !/[\\/]/u.test(text)) assert.deepStrictEqual(JSON.parse(toJson(commented)), JSON.parse(text))
      }),
      { numRuns: scaled(400) }
    )
    assert.strictEqual(toJson("/".repeat(1_000_000)).length, 0)
  })

  it.effect("servers as JSON are decoded with their secrets", () =>
    Effect.gen(function* () {
      const servers = yield* Schema.decodeUnknownEffect(McpConfig.Servers)({
        a: { type: "stdio", command: "x", env: { K: "v" } }
      })
      assert.notInclude(JSON.stringify(servers), '"v"')
      yield* Effect.flip(Schema.decodeUnknownEffect(McpConfig.Servers)({ a: { type: "stdio", command: "" } }))
    })
  )
})
