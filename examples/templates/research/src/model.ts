/** The model of MODEL. Without it and without a key, a script answers, so the program runs at once. */
import { Config, Console, Effect, Layer } from "effect"
import { Message } from "effect-deepagents"
import { ChatModels } from "effect-deepagents/models"
import { TestChatModel } from "effect-deepagents/testing"

/** Has a researcher list the documents, and writes the list to the report. */
const script = TestChatModel.reactive(({ messages, tools }) => {
  const last = messages.at(-1)
  const text = last === undefined ? "" : Message.text(last)
  const call = (name: string, args: Record<string, string>) => TestChatModel.calls([{ name, arguments: args }])
  if (!tools.some(({ name }) => name === "task")) {
    return last?.role === "tool" ? text : call("glob", { pattern: "/documents/**" })
  }
  if (last?.role !== "tool") return call("task", { subagent_type: "researcher", description: "List the documents." })
  return last.toolName === "task"
    ? call("write_file", { file_path: "/report.md", content: `The documents:\n\n${text}\n` })
    : `I am a script. I read nothing, but listed the documents. ${text}`
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
