/** Agents with a scripted model, for tests. */
import { Effect, Layer, Schema } from "effect"
import { Agent, Message, Question, Tool, ToolContext } from "effect-deepagents"
import { FileTools } from "effect-deepagents/backends"
import { AskUser, HumanInTheLoop, Subagents, Todos } from "effect-deepagents/middleware"
import { TestChatModel } from "effect-deepagents/testing"

/** The last words of a person, and how often the model was asked since. */
const readQuestion = (messages: ReadonlyArray<Message.Message>) => {
  const at = messages.findLastIndex(({ role }) => role === "human")
  const message = messages[at]
  return { text: message === undefined ? "" : Message.text(message), rounds: messages.length - at - 1 }
}

const call = (id: string, name: string, args: Record<string, unknown>) =>
  TestChatModel.calls([{ id, name, arguments: JSON.parse(JSON.stringify(args)) }], { text: "I try. " })

/** What the model does for a word of the person: one call, and then an answer. */
const acts: { readonly [word: string]: (argument: string) => TestChatModel.Turn } = {
  write: (path) => call(`w-${path}`, "write_file", { file_path: path, content: "new\n" }),
  edit: (path) => call(`e-${path}`, "edit_file", { file_path: path, old_string: "one", new_string: "two" }),
  read: (path) => call(`r-${path}`, "read_file", { file_path: path }),
  run: (command) => call("x", "execute", { command }),
  plan: () =>
    call("t", "write_todos", {
      todos: [
        { id: "1", content: "look", status: "completed" },
        { id: "2", content: "mend", status: "in_progress" }
      ]
    }),
  ask: () =>
    call("q", "ask_user", {
      questions: [
        { id: "colour", label: "Which colour?", kind: "one", options: ["red", "blue"] },
        { id: "sizes", label: "Which sizes?", kind: "many", options: ["S", "M", "L"] }
      ]
    }),
  choose: () => call("c", "choose", {}),
  delegate: (task) => call("d", "task", { description: task, subagent_type: "helper" }),
  hang: () => TestChatModel.hangAfter("I think"),
  cut: () => TestChatModel.text("half", { stopReason: "length" }),
  refuse: () => TestChatModel.text("no", { stopReason: "refusal" }),
  fail: () => TestChatModel.fail({ _tag: "InvalidRequest" })
}

const model = TestChatModel.reactive(({ messages }) => {
  const { rounds, text } = readQuestion(messages)
  const [, word = "", argument = ""] = /^(\w+)(?: ([^]*))?$/.exec(text) ?? []
  const act = rounds === 0 ? acts[word] : undefined
  if (act !== undefined) return act(argument)
  const last = messages.at(-1)
  return TestChatModel.text(
    last?.role === "tool" ? [`${last.isError ? "failed" : "done"}: `, Message.text(last)] : ["Hello ", text]
  )
})

const chooseTool = Tool.make("choose", {
  description: "Asks the person for one of two.",
  parameters: {},
  execute: () =>
    Effect.flatMap(ToolContext.ToolContext, ({ ask }) =>
      ask(Question.make("Left or right?", { answer: Schema.Literals(["left", "right"]) }))
    )
})

const approvals = HumanInTheLoop.make({
  tools: { write_file: true, edit_file: true, execute: true }
})

const helper = Agent.make({
  name: "helper",
  description: "Helps",
  prompt: "You help.",
  tools: FileTools.make()
})

export const coder = Agent.make({
  name: "coder",
  description: "Codes",
  prompt: "You code.",
  tools: [...FileTools.make({ execute: true }), chooseTool],
  middleware: [Todos.make(), AskUser.make(), approvals, Subagents.make({ agents: [helper] })]
})

export const reviewer = Agent.make({ name: "reviewer", description: "Reviews", prompt: "You review." })

/** A model of its own for each test. */
export const models = Layer.fresh(model)
