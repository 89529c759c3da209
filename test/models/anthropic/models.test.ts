import { expect, it } from "vitest"
import { baseModel, bedrockFactor, profileOf } from "../../../src/models/internal/anthropic/models.ts"

it.each([
  ["claude-opus-5-5", "claude-opus-5-5"],
  ["claude-sonnet-4-5-20250929", "claude-sonnet-4-5"],
  ["claude-sonnet-4@20250514", "claude-sonnet-4"],
  ["anthropic.claude-opus-4-6-v1", "claude-opus-4-6"],
  ["anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"],
  ["us-gov.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"],
  ["global.anthropic.claude-haiku-4-5-20251001-v1:0", "claude-haiku-4-5"],
  ["anthropic.claude-sonnet-4-20250514-v1:0:200k", "claude-sonnet-4"],
  ["arn:aws:bedrock:eu-west-1:1:inference-profile/eu.anthropic.claude-opus-5-5", "claude-opus-5-5"]
])("%s is %s", (id, base) => {
  expect(baseModel(id)).toBe(base)
  expect(profileOf(id).facts).toBeDefined()
})

it("a Claude that nobody knows yet is asked carefully, a stranger too", () => {
  expect(profileOf("claude-next-9")).toMatchObject({
    contextWindowTokens: 200_000,
    forcedTools: false,
    structuredOutput: "tool"
  })
  expect(profileOf("qwen3:8b")).toMatchObject({
    contextWindowTokens: undefined,
    supportsVision: false,
    forcedTools: true
  })
})

it("every default leaves room: it requests no more than the model gives", () => {
  for (const id of ["claude-opus-5-5", "claude-opus-4-1", "claude-sonnet-4-5", "claude-x", "x"]) {
    const { maxOutputTokens, maxTokens } = profileOf(id)
    expect(maxTokens).toBeGreaterThanOrEqual(4_096)
    expect(maxTokens).toBeLessThanOrEqual(maxOutputTokens)
  }
})

it("on Bedrock one geography costs a tenth more, since Claude 4.5", () => {
  expect(bedrockFactor("eu.anthropic.claude-sonnet-4-5-20250929-v1:0")).toBe(1.1)
  expect(bedrockFactor("global.anthropic.claude-sonnet-4-5-20250929-v1:0")).toBe(1)
  expect(bedrockFactor("us.anthropic.claude-sonnet-4-20250514-v1:0")).toBe(1)
})
