/** Workflows that are saved as files, and their heads. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { Backend, type Json } from "effect-deepagents"
import { MemoryBackend } from "effect-deepagents/backends"
import { Workflow } from "effect-deepagents/code"
import * as fc from "fast-check"
import { withoutFence } from "../../src/code/internal/setup.ts"
import { bodyOf, readMeta } from "../../src/code/internal/workflow/meta.ts"
import { scaled } from "../scale.ts"

const find = (files: { readonly [path: string]: string | Uint8Array }, ...folders: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const backend = yield* Backend.Backend
    const encoder = new TextEncoder()
    yield* backend.upload(
      Object.entries(files).map(([path, content]) => ({
        path,
        content: typeof content === "string" ? encoder.encode(content) : content
      }))
    )
    return yield* Workflow.saved(folders)
  }).pipe(Effect.provide(MemoryBackend.layer()))

describe("saved workflows", () => {
  it.effect("of more than 256 KiB are problems, with their size and the limit", () =>
    Effect.gen(function* () {
      const { problems, workflows } = yield* find({ "/w/large.ts": `return 1${" ".repeat(300_000)}` }, "/w")
      assert.deepStrictEqual(workflows, [])
      assert.deepStrictEqual(problems, [
        { path: "/w/large.ts", problem: "it has 300008 bytes, and at most 262144 are read" }
      ])
    })
  )

  it.effect("are found by their heads, the first folder first", () =>
    Effect.gen(function* () {
      const head = `// Surveys
        export const meta = {
          name: 'survey', description: "Reads\\tall \\u0066iles", // a comment
          phases: [{ title: \`Find\`, detail: '…' }, 'Verify',],
          'more': { deep: [1, -2.5e3, true, null] },
        }
        phase("Find")`
      const found = yield* find(
        {
          "/mine/survey.ts": head,
          "/mine/plain.js": "return 1",
          "/mine/types.d.ts": "export {}",
          "/mine/readme.md": "no",
          "/theirs/other.ts": `export const meta = { name: "survey", description: "another" }`
        },
        "/mine",
        "/theirs",
        "/missing"
      )
      assert.deepStrictEqual(
        found.workflows.map(({ script: _script, ...one }) => one),
        [
          { name: "plain", description: "", phases: [], path: "/mine/plain.js" },
          { name: "survey", description: "Reads all files", phases: ["Find", "Verify"], path: "/mine/survey.ts" }
        ]
      )
      assert.deepStrictEqual(found.problems, [])
      assert.include(bodyOf(head), "const meta = {")
      assert.notInclude(bodyOf(head), "export")
      // Lines of errors are the lines of the file.
      assert.strictEqual(bodyOf(head).split("\n").length, head.split("\n").length)
    })
  )

  it.effect("that are hostile are named with their problem, and run nothing", () =>
    Effect.gen(function* () {
      const found = yield* find(
        {
          "/w/call.ts": `export const meta = { name: (() => { throw 1 })() }`,
          "/w/template.ts": "export const meta = { name: `a${process.exit()}` }",
          "/w/name.ts": `export const meta = { name: "../../etc" }`,
          "/w/line.ts": `export const meta = { name: "a\\u001b[2J" }`,
          "/w/proto.ts": `export const meta = { __proto__: { name: "inherited" }, description: "x\\u202ey" }`,
          "/w/deep.ts": `export const meta = ${"[".repeat(100_000)}`,
          "/w/bytes.ts": new Uint8Array([0xff, 0xfe, 0x00]),
          "/w/large.ts": "x".repeat(300 * 1024)
        },
        "/w"
      )
      assert.deepStrictEqual(
        found.workflows.map(({ description, name }) => [name, description]),
        [["proto", "xy"]]
      )
      assert.deepStrictEqual(found.problems.map(({ path }) => path).toSorted(), [
        "/w/bytes.ts",
        "/w/call.ts",
        "/w/deep.ts",
        "/w/large.ts",
        "/w/line.ts",
        "/w/name.ts",
        "/w/template.ts"
      ])
      assert.isTrue(found.problems.every(({ problem }) => !/\p{Cc}/u.test(problem)))
    })
  )

  it("that misspell their head are named with what was meant", () => {
    const problemOf = (script: string) =>
      Result.match(Workflow.parse(script, "a.ts"), {
        onFailure: ({ problem }) => problem,
        onSuccess: ({ name }) => `fine: ${name}`
      })
    assert.deepStrictEqual(
      [
        `export const mete = { name: "b" }`,
        `export const meta = { nmae: "b" }`,
        `export const meta = { name: "b", phases: "Read" }`,
        `export const meta = { name: 3 }`,
        // Other programs have other fields, and a text of the script may have code.
        `export const meta = { name: "b", whenToUse: "often", model: "x" }`,
        "const prompt = `\nexport const data = 1\n`\nreturn 1",
        `return 1`
      ].map(problemOf),
      [
        'it exports "mete". Did you mean "meta"?',
        'its `meta` has "nmae". Did you mean "name"?',
        "its `phases` must be a list",
        "its `name` must be a text",
        "fine: b",
        "fine: a",
        "fine: a"
      ]
    )
  })

  it("have heads that are read as JavaScript reads them", () => {
    const { literal } = fc.letrec<{ literal: Json.Json }>((tie) => ({
      literal: fc.oneof(
        { maxDepth: 3 },
        fc.string({ unit: "binary" }),
        fc.double({ noNaN: true, noDefaultInfinity: true }).map((n) => (Object.is(n, -0) ? 0 : n)),
        fc.boolean(),
        fc.constant(null),
        fc.array(tie("literal"), { maxLength: 4 }),
        fc.dictionary(
          fc.string().filter((key) => key !== "__proto__"),
          tie("literal"),
          { maxKeys: 4 }
        )
      )
    }))
    fc.assert(
      fc.property(literal, fc.string(), (value, description) => {
        const json = JSON.stringify({ ignored: value, description, phases: [description] }, undefined, 2)
        const meta = Result.getOrThrow(readMeta(`export const meta: Meta = ${json};\nreturn 1`))
        assert.deepStrictEqual(meta, {
          name: undefined,
          description,
          phases: description === "" ? [] : [description]
        })
      }),
      { numRuns: scaled(400) }
    )
    // Any text is read, or refused.
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        readMeta(`export const meta = ${text}`)
        readMeta(`export const meta = {${text}}`)
      }),
      { numRuns: scaled(400) }
    )
  })
})

describe("long scripts", () => {
  // Time in the square of these lengths would be a minute, and fail by the time of a test.
  it("are read in time that grows as they do", () => {
    const length = 256 * 1024
    for (const source of [
      "\n".repeat(length),
      " ".repeat(length),
      "export const meta:".repeat(length / 16),
      `export${" ".repeat(length)}`,
      "/*".repeat(length / 2)
    ]) {
      assert.isTrue(Result.isSuccess(readMeta(source)))
      assert.strictEqual(bodyOf(source), source)
      assert.strictEqual(withoutFence(`\`\`\`js\n${source}x`), `\`\`\`js\n${source}x`)
    }
  })

  it("come out of their fence", () => {
    for (const [fenced, script] of [
      ["```ts\nreturn 1\n```", "return 1"],
      ["  ```\nreturn 1\nreturn 2\n  ```\n\n", "return 1\nreturn 2"],
      ["```\n\n```", ""],
      ["return `\n```\n`", "return `\n```\n`"],
      ["```\n```", "```\n```"],
      ["```js\nreturn 1", "```js\nreturn 1"]
    ] as const) {
      assert.strictEqual(withoutFence(fenced), script)
    }
  })
})
