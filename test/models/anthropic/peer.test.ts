import { execFile } from "node:child_process"
import { promisify } from "node:util"
import { expect, it } from "vitest"

const run = promisify(execFile)

/** A process in which these packages are not installed. */
const withoutPackages = async (names: ReadonlyArray<string>, script: string): Promise<string> => {
  const hook = `import { registerHooks } from "node:module"
    const missing = ${JSON.stringify(names)}
    registerHooks({ resolve: (specifier, context, next) => {
      if (missing.some((name) => specifier === name || specifier.startsWith(name + "/")))
        throw Object.assign(new Error("Cannot find package '" + specifier + "'"), { code: "ERR_MODULE_NOT_FOUND" })
      return next(specifier, context)
    } })`
  const { stdout } = await run(process.execPath, [
    "--conditions=@effect-deepagents/source",
    "--import",
    `data:text/javascript,${encodeURIComponent(hook)}`,
    "--input-type=module",
    "-e",
    script
  ])
  return stdout.trim()
}

const failing = (name: string): string => `
  import { Effect, Layer } from "effect"
  import * as ${name} from "effect-deepagents/models/${name}"
  const build = Effect.scoped(Layer.build(${name}.layer({ model: "claude-opus-5-5" })))
  const error = await Effect.runPromise(Effect.flip(build))
  console.log(error.reason._tag + " " + error.message)`

it.each([
  ["AnthropicChatModel", "@anthropic-ai/sdk"],
  ["BedrockChatModel", "@anthropic-ai/bedrock-sdk"],
  ["BedrockConverseChatModel", "@aws-sdk/client-bedrock-runtime"]
])("%s can be imported without its SDK, and building the layer says which package to install", async (name, sdk) => {
  const said = await withoutPackages(["@anthropic-ai", "@aws-sdk", "openai", "node-llama-cpp"], failing(name))
  expect(said).toMatch(/^Unsupported /)
  expect(said).toContain(`npm install ${sdk}`)
})

it("Anthropic's own API needs no SDK for Bedrock", async () => {
  const script = `
    import { Effect, Layer, Redacted } from "effect"
    import * as AnthropicChatModel from "effect-deepagents/models/AnthropicChatModel"
    const layer = AnthropicChatModel.layer({ model: "claude-opus-5-5", apiKey: Redacted.make("k") })
    await Effect.runPromise(Effect.scoped(Layer.build(layer)))
    console.log("built")`
  expect(await withoutPackages(["@anthropic-ai/bedrock-sdk", "@aws-sdk", "@smithy"], script)).toBe("built")
})
