import { execFile } from "node:child_process"
import { promisify } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"

const run = promisify(execFile)

/** A process in which the package `openai` is not installed. */
const without = `
import { registerHooks } from "node:module"
registerHooks({
  resolve(specifier, context, next) {
    if (specifier === "openai" || specifier.startsWith("openai/")) {
      throw Object.assign(new Error("Cannot find package 'openai'"), { code: "ERR_MODULE_NOT_FOUND" })
    }
    return next(specifier, context)
  }
})
`

const program = `
import { Effect, Layer, Redacted } from "effect"
import * as OpenAiChatModel from "effect-deepagents/models/OpenAiChatModel"
const layer = OpenAiChatModel.layer({ model: "gpt-5", apiKey: Redacted.make("key") })
const error = await Effect.runPromise(Effect.flip(Effect.scoped(Layer.build(layer))))
console.log(JSON.stringify([error._tag, error.reason._tag, error.message]))
`

describe("without the package openai", () => {
  it.live("the module can be imported, and the layer says what to install", () =>
    Effect.gen(function* () {
      const hide = `data:text/javascript,${encodeURIComponent(without)}`
      const args = ["--conditions=@effect-deepagents/source", "--import", hide, "--input-type=module", "-e", program]
      const { stdout } = yield* Effect.promise(() => run(process.execPath, args))
      const [tag, reason, message]: ReadonlyArray<string> = JSON.parse(stdout)
      assert.deepStrictEqual([tag, reason], ["ModelError", "Unsupported"])
      assert.include(message!, "npm install openai")
    })
  )
})
