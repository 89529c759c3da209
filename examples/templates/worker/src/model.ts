/** The model of MODEL. Without it and without a key, a script answers, so the program runs at once. */
import { Config, Console, Effect, Layer } from "effect"
import { Message } from "effect-deepagents"
import { ChatModels } from "effect-deepagents/models"
import { TestChatModel } from "effect-deepagents/testing"

/** The first three sentences of the text. */
const script = TestChatModel.reactive(({ messages }) => {
  const [first] = messages
  const sentences = (first === undefined ? "" : Message.text(first)).match(/[^.!?]+[.!?]*/g) ?? []
  return sentences.slice(0, 3).join("").trim()
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
