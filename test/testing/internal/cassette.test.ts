import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { Message } from "effect-deepagents"
import * as fc from "fast-check"
import * as Format from "../../../src/testing/internal/cassette/format.ts"
import * as Redact from "../../../src/testing/internal/cassette/redact.ts"
import { scaled } from "../../scale.ts"

describe("cassette lines", () => {
  const lines: ReadonlyArray<Format.Line> = [
    { type: "model", v: 1, provider: "p", modelId: "m", supportsVision: true },
    ...["one", "zwei ä😀"].flatMap((text, index): ReadonlyArray<Format.Line> => [
      { type: "value", hash: `h${index}`, value: { text: "a\nb" } },
      {
        type: "turn",
        key: `k${index}`,
        request: {
          systemPrompt: "h0",
          tools: [],
          toolChoice: index === 0 ? "auto" : { tool: "f" },
          outputSchema: null,
          parameters: "h0",
          messages: [`h${index}`]
        },
        parts: [
          { _tag: "ToolCallStart", id: "c", name: "f", providerExecuted: true },
          { _tag: "TextDelta", text },
          { _tag: "TurnDone", message: Message.ai(text, { providerData: { signature: "s" } }) }
        ]
      }
    ])
  ]
  const text = Format.render(lines)
  const turns = lines.filter((line) => line.type === "turn")

  it("come back as they were written", () => {
    const recorded = Effect.runSync(Format.parse(text))
    assert.deepStrictEqual(recorded.turns, turns)
    assert.deepStrictEqual(recorded.model, lines[0])
    assert.deepStrictEqual([...recorded.values.keys()], ["h0", "h1"])
  })

  it("cut anywhere, give the turns that are whole", () => {
    fc.assert(
      fc.property(fc.nat(text.length), (length) => {
        const cut = text.slice(0, length)
        const result = Effect.runSync(Effect.result(Format.parse(cut)))
        if (!cut.includes("\n")) return Result.isFailure(result)
        assert(Result.isSuccess(result))
        const whole = turns.filter((turn) => cut.includes(Format.render([turn])))
        assert.deepStrictEqual(result.success.turns, whole)
        return true
      })
    )
  })

  it("that are something else are named", () => {
    fc.assert(
      fc.property(fc.json({ noUnicodeString: false }), (junk) => {
        const result = Effect.runSync(Effect.result(Format.parse(`${text}${junk}\n`)))
        assert(Result.isFailure(result))
        assert.include(result.failure, `line ${lines.length + 1} is not one of a cassette`)
      })
    )
  })
})

describe("redaction", () => {
  const redact = Redact.withBuiltIn(undefined)

  it.each([
    "sk-proj-abcdefghij0123456789",
    "sk-ant-api03-abcdefghij_0123456789",
    "sk_live_abcdefghij0123456789",
    "AIzaSyA1234567890abcdefghijklmnopqrstuv",
    "ghp_abcdefghijklmnopqrst0123456789",
    "github_pat_11ABCDEFG0abcdefghijkl",
    "hf_abcdefghijklmnopqrstuv",
    "xoxb-1234567890-abcdefgh",
    "AKIAIOSFODNN7EXAMPLE",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl"
  ])("takes out %s", (secret) => {
    assert.strictEqual(redact(`a ${secret} b`), "a [redacted] b")
    assert.strictEqual(redact(`{"key":"${secret}"}`), `{"key":"[redacted]"}`)
  })

  it.each([
    ["Bearer a1b2c3d4e5f6", "Bearer [redacted]"],
    ["authorization: Basic dXNlcjpwYXNz", "authorization: Basic [redacted]"],
    ["AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG", "AWS_SECRET_ACCESS_KEY=[redacted]"],
    [`{"client_secret": "abcdefgh"}`, `{"client_secret": "[redacted]"}`],
    [`{\\"apiKey\\":\\"abcdefgh\\"}`, `{\\"apiKey\\":\\"[redacted]\\"}`],
    ["postgres://me:hunter22@db/x", "postgres://me:[redacted]@db/x"],
    ["-----BEGIN RSA PRIVATE KEY-----\nabc\n", "[redacted]"]
  ])("keeps what is around it: %s", (text, expected) => {
    assert.strictEqual(redact(text), expected)
  })

  it.each([
    "A basic understanding of bearer bonds.",
    "The secret: patience. Basic knowledge; token: 12345678",
    "risk-management-strategies and task_force_of_many_people",
    "See https://example.com:8080/a@b and mail me@example.com",
    "desk-top-of-the-line-machine"
  ])("leaves prose alone: %s", (text) => {
    assert.strictEqual(redact(text), text)
  })

  const fragment = fc.constantFrom(
    "sk-",
    "abcdefgh1234567890",
    "Bearer ",
    "Authorization: ",
    "Basic ",
    "api_key=",
    `"password": "`,
    `"`,
    " ",
    "\n",
    "https://u:",
    "@host",
    "[redacted]",
    "eyJabcdefgh1",
    ".",
    "AKIAIOSFODNN7EXAMPLE",
    "-----BEGIN PRIVATE KEY-----",
    "-----END PRIVATE KEY-----",
    "x"
  )

  it("twice is once", () => {
    fc.assert(
      fc.property(fc.array(fragment, { maxLength: 14 }), (fragments) => {
        const once = redact(fragments.join(""))
        assert.strictEqual(redact(once), once)
      }),
      { numRuns: scaled(3000) }
    )
  })
})
