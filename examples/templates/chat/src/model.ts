/** The model of MODEL. Without it and without a key, a script answers, so the program runs at once. */
import { Config, Console, Effect, Layer } from "effect"
import { Message } from "effect-deepagents"
import { ChatModels } from "effect-deepagents/models"
import { TestChatModel } from "effect-deepagents/testing"

/** Looks up the number of the question, and says what the tool found. */
const script = TestChatModel.reactive(({ messages }) => {
  const last = messages.at(-1)
  const text = last === undefined ? "" : Message.text(last)
  if (last?.role === "tool") return text
  const [number] = /\d+/.exec(text) ?? []
  if (number === undefined) return "I am a script, and know only orders. Ask about order 42."
  return TestChatModel.calls([{ name: "lookup_order", arguments: { number } }])
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
