/** The model of MODEL. Without it and without a key, a script answers, so the program runs at once. */
import { Config, Console, Effect, Layer } from "effect"
import { Message } from "effect-deepagents"
import { ChatModels } from "effect-deepagents/models"
import { TestChatModel } from "effect-deepagents/testing"

/** Runs the tests, and says how they ended. */
const script = TestChatModel.reactive(({ messages }) => {
  const last = messages.at(-1)
  return last?.role === "tool"
    ? `I am a script, and change nothing. I ran the tests:\n\n${Message.text(last)}\n`
    : TestChatModel.calls([{ name: "execute", arguments: { command: "npm test" } }])
})

const setting = (name: string) => Config.withDefault(Config.String(name), "")

export const model = Layer.unwrap(
  Effect.gen(function* () {
    const spec = yield* setting("MODEL")
    const key = yield* setting("ANTHROPIC_API_KEY")
    if (spec !== "" || key !== "") return ChatModels.resolve(spec === "" ? "anthropic:claude-sonnet-5-5" : spec)
    yield* Console.error("There is no key, so a script answers. For a model, write ANTHROPIC_API_KEY into .env.")
    return script
  })
)
