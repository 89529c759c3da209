/** Diagnostics of a language server after an edit: TypeScript's own server, and a server that only publishes. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Agent } from "effect-deepagents"
import { FileTools } from "effect-deepagents/backends"
import * as FilesystemBackend from "effect-deepagents/backends/FilesystemBackend"
import { TestChatModel } from "effect-deepagents/testing"
import { LspDiagnostics } from "effect-deepagents/workspace"
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import * as Client from "../../src/workspace/internal/lsp/client.ts"

const tsc = join(createRequire(import.meta.url).resolve("typescript/package.json"), "../bin/tsc")

const typescript = {
  ...LspDiagnostics.typescript,
  command: [process.execPath, tsc, "--lsp", "--stdio"] as const
}

/** A server that asks a question first, and publishes diagnostics: every file with "bad" in it is wrong. */
const publishing = `
let left = Buffer.alloc(0)
const send = (m) => { const b = Buffer.from(JSON.stringify({ jsonrpc: "2.0", ...m })); process.stdout.write("Content-Length: " + b.length + "\\r\\n\\r\\n"); process.stdout.write(b.subarray(0, 5)); process.stdout.write(b.subarray(5)) }
const on = (m) => {
  if (m.method === "initialize") { send({ id: "q", method: "workspace/configuration", params: { items: [1, 2] } }); send({ id: m.id, result: { capabilities: {} } }) }
  const doc = m.params && m.params.textDocument
  const text = m.method === "textDocument/didOpen" ? doc.text : m.method === "textDocument/didChange" ? m.params.contentChanges[0].text : undefined
  if (text !== undefined) send({ method: "textDocument/publishDiagnostics", params: { uri: doc.uri, diagnostics: text.includes("bad") ? [{ range: { start: { line: 0, character: 2 }, end: { line: 0, character: 3 } }, severity: 2, message: "this is\\nbad" }] : [] } })
}
process.stdin.on("data", (d) => { left = Buffer.concat([left, d]); for (;;) { const e = left.indexOf("\\r\\n\\r\\n"); if (e < 0) return; const n = Number(/length: *(\\d+)/i.exec(left.subarray(0, e).toString())[1]); if (left.length < e + 4 + n) return; const b = left.subarray(e + 4, e + 4 + n).toString(); left = left.subarray(e + 4 + n); on(JSON.parse(b)) } })
`

const call = (name: string, args: Readonly<Record<string, string>>) => TestChatModel.calls([{ name, arguments: args }])

const agent = Agent.make({
  name: "coder",
  prompt: "You code.",
  tools: FileTools.make(),
  middleware: [LspDiagnostics.make()]
})

/** The messages to the model after each of these turns, with this server. */
const runTurns = (
  options: Omit<Parameters<typeof LspDiagnostics.layer>[0], "root">,
  files: Readonly<Record<string, string>>,
  turns: ReadonlyArray<TestChatModel.Turn>
) =>
  Effect.acquireUseRelease(
    Effect.sync(() => {
      const root = mkdtempSync(join(tmpdir(), "lsp-"))
      for (const [name, content] of Object.entries(files)) writeFileSync(join(root, name), content)
      return root
    }),
    (root) =>
      Agent.run(agent, "Go").pipe(
        Effect.map(({ messages }) =>
          messages.flatMap((message) =>
            message.role === "tool"
              ? [message.content.map((block) => (block.type === "text" ? block.text : "")).join("")]
              : []
          )
        ),
        Effect.provide([
          TestChatModel.script([...turns, "done"]),
          FilesystemBackend.layer({ root }),
          LspDiagnostics.layer({ root, ...options }).pipe(Layer.provide(NodeServices.layer))
        ])
      ),
    (root) => Effect.sync(() => rmSync(root, { recursive: true, force: true }))
  )

describe("diagnostics after an edit", () => {
  it.live("come from TypeScript for each new text, over several files", () =>
    Effect.gen(function* () {
      const [wrong, mended, other, plain] = yield* runTurns(
        typescript,
        { "tsconfig.json": '{ "compilerOptions": { "strict": true, "noEmit": true } }' },
        [
          call("write_file", { file_path: "/a.ts", content: 'export const a: number = "x"\n' }),
          call("edit_file", { file_path: "/a.ts", old_string: '"x"', new_string: "1" }),
          call("write_file", {
            file_path: "/b.ts",
            content: 'import { a } from "./a.js"\nexport const b: string = a\n'
          }),
          call("write_file", { file_path: "/c.txt", content: "text" })
        ]
      )
      assert.include(wrong, "[the language server says of /a.ts:]\n1:14 error 2322: Type 'string' is not assignable")
      assert.notInclude(mended, "language server")
      assert.include(other, "2:14 error 2322: Type 'number' is not assignable to type 'string'")
      assert.notInclude(plain, "language server")
    })
  )

  it.live("come from a server that can't be asked, too", () =>
    Effect.gen(function* () {
      const server = {
        command: [process.execPath, "-e", publishing] as const,
        languages: { txt: "text" }
      }
      const [bad, good] = yield* runTurns(server, {}, [
        call("write_file", { file_path: "/ä b.txt", content: "bad" }),
        call("edit_file", { file_path: "/ä b.txt", old_string: "bad", new_string: "good" })
      ])
      assert.include(bad, "[the language server says of /ä b.txt:]\n1:3 warning this is bad")
      assert.notInclude(good, "language server")
    })
  )

  it.live("come with the settings that a server asks for: TypeScript installs nothing", () =>
    Effect.gen(function* () {
      const asking = publishing.replace(
        "{ items: [1, 2] }",
        '{ items: [1, { section: "typescript" }, { section: "__proto__" }] }'
      )
      const server = {
        ...LspDiagnostics.typescript,
        command: [
          process.execPath,
          "-e",
          asking
            .replace(
              "const on = (m) => {",
              "let bad; const on = (m) => {\n  if (m.id === 'q') bad = JSON.stringify(m.result)"
            )
            .replace('"this is\\nbad"', "bad")
        ] as const
      }
      const [first] = yield* runTurns(server, {}, [call("write_file", { file_path: "/a.js", content: "bad" })])
      assert.include(first, '[null,{"disableAutomaticTypeAcquisition":true},null]')
    })
  )

  it.live("come from one server, though the first to ask went away while it began", () =>
    Effect.acquireUseRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "lsp-"))),
      (root) =>
        Effect.gen(function* () {
          const slow = `require("node:fs").appendFileSync("started", "x"); setTimeout(() => { ${publishing} }, 500)`
          const server = { root, command: [process.execPath, "-e", slow] as const, languages: { txt: "text" } }
          const problems = yield* Effect.gen(function* () {
            const { diagnose } = yield* LspDiagnostics.LanguageServer
            yield* Effect.timeoutOption(diagnose("/a.txt", "bad"), "400 millis")
            return yield* diagnose("/a.txt", "bad")
          }).pipe(Effect.provide(LspDiagnostics.layer(server).pipe(Layer.provide(NodeServices.layer))))
          assert.deepInclude(problems?.[0], { line: 1, message: "this is bad" })
          assert.strictEqual(readFileSync(join(root, "started"), "utf8"), "x")
        }),
      (root) => Effect.sync(() => rmSync(root, { recursive: true, force: true }))
    )
  )

  it.effect("are read from frames in any pieces; an invalid or too long frame costs only itself", () =>
    Effect.sync(() => {
      const encode = (text: string) => new TextEncoder().encode(text)
      const frame = (body: string) => `Content-Length: ${body.length}\r\n\r\n${body}`
      const large = "x".repeat(20_000_000)
      const bytes = encode(`${frame("one")}${"junk".repeat(5_000)}\r\n\r\n${frame(large)}${frame("two")}`)
      for (const size of [1_000, 65_536, bytes.length]) {
        const read = Client.makeReader()
        const bodies: Array<string> = []
        for (let at = 0; at < bytes.length; at += size) bodies.push(...read(bytes.subarray(at, at + size)))
        assert.deepStrictEqual(
          bodies.filter((body) => body !== "").map((body) => body.length),
          [3, 20_000_000, 3]
        )
      }
      const read = Client.makeReader()
      assert.deepStrictEqual(read(encode("Content-Length: 99999999\r\n\r\n")), [])
      for (let left = 99_999_999; left > 0; left -= 1_000_000) {
        assert.deepStrictEqual(read(new Uint8Array(Math.min(left, 1_000_000))), [])
      }
      assert.deepStrictEqual(read(encode(frame("after"))), ["after"])
    })
  )

  it.live("are missing without a server or with a dead one, and nothing else is", () =>
    Effect.gen(function* () {
      const turns = [call("write_file", { file_path: "/a.txt", content: "x" })]
      for (const command of [["/no/such/program"], [process.execPath, "-e", "process.exit(1)"]] as const) {
        const [text] = yield* runTurns({ command, languages: { txt: "text" } }, {}, turns)
        assert.include(text, "/a.txt")
        assert.notInclude(text, "language server")
      }
    })
  )

  /** A server in memory: its requests, and a way to publish. */
  const server = Effect.gen(function* () {
    const said = yield* Queue.make<Uint8Array, Cause.Done>()
    const told: Array<{ readonly id?: number; readonly method: string }> = []
    const read = Client.makeReader()
    const wire: Client.Wire = {
      incoming: Stream.fromQueue(said),
      send: (bytes) => Effect.sync(() => void told.push(...read(bytes).map((body) => JSON.parse(body))))
    }
    const say = (message: object) => {
      const body = new TextEncoder().encode(JSON.stringify({ jsonrpc: "2.0", ...message }))
      const head = new TextEncoder().encode(`Content-Length: ${body.length}\r\n\r\n`)
      return Queue.offerAll(said, [head, body])
    }
    return { wire, say, end: Queue.end(said), methods: () => told.map(({ method }) => method) }
  })

  it.effect("wait for a server that takes its time to begin: nothing is asked of it before it has answered", () =>
    Effect.gen(function* () {
      const { methods, say, wire } = yield* server
      const making = yield* Effect.forkScoped(Client.make(wire, "file:///"))
      yield* TestClock.adjust("100 seconds")
      assert.deepStrictEqual(methods(), ["initialize"])
      yield* say({ id: 1, result: { capabilities: { diagnosticProvider: {} } } })
      const client = yield* Fiber.join(making)
      const asked = yield* Effect.forkScoped(client?.diagnose("file:///a", "text", "x") ?? Effect.die("no client"))
      yield* TestClock.adjust(0)
      yield* say({ id: 2, result: { kind: "full", items: [] } })
      assert.deepStrictEqual(yield* Fiber.join(asked), [])
      assert.deepStrictEqual(methods(), [
        "initialize",
        "initialized",
        "textDocument/didOpen",
        "textDocument/diagnostic"
      ])
    })
  )

  it.effect("don't wait for a server that does not begin, or has ended since", () =>
    Effect.gen(function* () {
      const mute = yield* server
      const none = yield* Effect.forkScoped(Client.make(mute.wire, "file:///"))
      yield* TestClock.adjust("2 minutes")
      assert.isUndefined(yield* Fiber.join(none))
      const { end, say, wire } = yield* server
      const making = yield* Effect.forkScoped(Client.make(wire, "file:///"))
      yield* TestClock.adjust(0)
      yield* say({ id: 1, result: { capabilities: {} } })
      const client = yield* Fiber.join(making)
      yield* end
      // The clock stands still.
      assert.isUndefined(yield* client?.diagnose("file:///a", "text", "x") ?? Effect.die("no client"))
    })
  )
})
