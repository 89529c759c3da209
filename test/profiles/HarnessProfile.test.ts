import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { HarnessProfile } from "effect-deepagents/profiles"

describe("HarnessProfile", () => {
  it("merges the provider's, then the model's, then the longer id's; sets unite, scalars are replaced", () => {
    const profiles: ReadonlyArray<HarnessProfile.HarnessProfile> = [
      { model: "claude-opus", basePrompt: "opus", excludedTools: ["b"], toolDescriptions: { x: "opus" } },
      { provider: "anthropic", basePrompt: "all", promptSuffix: "end", excludedTools: ["a"] },
      { provider: "openai", basePrompt: "other" },
      { model: "claude", toolDescriptions: { x: "claude", y: "claude" } },
      { model: "claude-opus-5", toolDescriptions: { z: "five" } }
    ]
    assert.deepStrictEqual(HarnessProfile.resolve(profiles, "Anthropic", "claude-opus-5-5"), {
      basePrompt: "opus",
      promptSuffix: "end",
      excludedTools: ["a", "b"],
      toolDescriptions: { x: "opus", y: "claude", z: "five" }
    })
    assert.deepStrictEqual(HarnessProfile.resolve(profiles, "x", "y"), {})
  })

  it("a field with the value undefined keeps the earlier value, in any order of merging", () => {
    const full: HarnessProfile.HarnessProfile = {
      provider: "p",
      model: "m",
      basePrompt: "base",
      promptSuffix: "end",
      excludedTools: ["a"],
      toolDescriptions: { x: "one" }
    }
    const none: HarnessProfile.HarnessProfile = {
      provider: undefined,
      model: undefined,
      basePrompt: undefined,
      promptSuffix: undefined,
      excludedTools: undefined,
      toolDescriptions: undefined
    }
    assert.deepStrictEqual(HarnessProfile.merge(full, none), full)
    assert.deepStrictEqual(HarnessProfile.merge(none, full), full)
    assert.deepStrictEqual(HarnessProfile.merge(HarnessProfile.merge(full, none), { basePrompt: "" }), {
      ...full,
      basePrompt: ""
    })
  })

  it("finds a model behind regions and vendors, and with colons in its id, but not inside of a word", () => {
    const profiles = [
      { model: "claude", basePrompt: "yes" },
      { model: "llama3", basePrompt: "llama" }
    ]
    const base = (model: string) => HarnessProfile.resolve(profiles, "any", model).basePrompt
    assert.strictEqual(base("us.anthropic.claude-sonnet-4"), "yes")
    assert.strictEqual(base("anthropic/claude-x"), "yes")
    assert.strictEqual(base("llama3:8b"), "llama")
    assert.strictEqual(base("notclaude"), undefined)
  })

  it.effect("reads YAML and JSON, and names their problems", () =>
    Effect.gen(function* () {
      const read = yield* HarnessProfile.fromYaml(
        "model: qwen\nexcludedTools:\n  - task\ntoolDescriptions:\n  ls: Lists\n"
      )
      assert.deepStrictEqual(read, { model: "qwen", excludedTools: ["task"], toolDescriptions: { ls: "Lists" } })
      assert.deepStrictEqual(yield* HarnessProfile.fromYaml('{"model": "x"}'), { model: "x" })
      const unknown = yield* Effect.flip(HarnessProfile.fromYaml("excludedTool: [a]"))
      assert.include(unknown.message, "excludedTool: expected")
      const wrong = yield* Effect.flip(HarnessProfile.fromYaml("excludedTools: 3"))
      assert.include(wrong.message, "excludedTools: expected array, got 3")
      const inside = yield* Effect.flip(HarnessProfile.fromYaml("excludedTools: [a, 3]"))
      assert.include(inside.message, "excludedTools[1]: expected string, got 3")
      const broken = yield* Effect.flip(HarnessProfile.fromYaml("a: [1"))
      assert.include(broken.message, "not a harness profile")
      // An alias bomb is refused before it is expanded.
      const bomb = yield* Effect.flip(HarnessProfile.fromYaml("a: &a [x]\nmodel: *a"))
      assert.strictEqual(bomb._tag, "InvalidProfile")
    })
  )

  it.effect("a hostile text is refused at once: keys that are maps, nesting, endless texts", () =>
    Effect.gen(function* () {
      for (const text of [
        `${"{".repeat(500)}${"}".repeat(500)}`,
        `${"? ".repeat(500)}a`,
        `${"[".repeat(30_000)}${"]".repeat(30_000)}`,
        `${"[{".repeat(10_000)}a: b${"}: 1]".repeat(10_000)}`,
        `? [a]\n: b`,
        `model: ${"x".repeat(65_536)}`
      ]) {
        assert.strictEqual((yield* Effect.flip(HarnessProfile.fromYaml(text)))._tag, "InvalidProfile")
      }
    })
  )

  it("the built-in ones decode as they are", () =>
    Effect.runPromise(Effect.forEach(HarnessProfile.builtIn, HarnessProfile.fromUnknown, { discard: true })))
})
