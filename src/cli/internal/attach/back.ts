/** Slash commands that go back in a thread of a server, or into a copy of it. Its files stay as they are. */
import * as Effect from "effect/Effect"
import * as Message from "../../../core/Message.ts"
import type { History } from "../../../server/ServerClient.ts"
import { cleanLine } from "../../../support/text/clean.ts"
import { cut } from "../../../support/text/text.ts"
import type { Problem } from "../chat/options.ts"
import { choose, problem } from "../chat/room.ts"
import { type Look, openThread } from "./look.ts"

/** A message of a person, and the entry before it; `null` for the first one. */
interface Prompt {
  readonly before: string | null
  readonly text: string
}

/** The most pages of a thread that are read: a server could tell of further ones for ever. */
const mostPages = 100

/** Reads the messages of the people of a thread, the oldest first. */
const readPrompts = Effect.fnUntraced(function* ({ options: { client } }: Look, thread: string) {
  let messages: History["messages"] = []
  let before: string | undefined
  for (let pages = 0; ; pages++) {
    if (pages === mostPages) {
      return yield* Effect.fail(problem("The thread is too long to go back in it here; use the page of the server."))
    }
    const page: History = yield* client.history(thread, { before })
    messages = [...page.messages, ...messages]
    before = page.next
    if (before === undefined) break
  }
  return messages.flatMap(({ message }, index): ReadonlyArray<Prompt> =>
    message?.role === "human" && message.source === undefined
      ? [{ before: messages[index - 1]?.entry ?? null, text: cleanLine(Message.text(message)) }]
      : []
  )
})

/** Chooses a message by the number of its turn or from a list. */
const choosePrompt = Effect.fnUntraced(function* (look: Look, thread: string, argument: string, title: string) {
  const prompts = yield* readPrompts(look, thread)
  if (prompts.length === 0) return yield* Effect.fail(problem("Nothing was said yet."))
  const items = prompts.map(({ text }, index) => ({
    value: String(index),
    label: cut(text, 60),
    about: `turn ${index + 1}`,
    isWhole: true
  }))
  const choice = argument === "" ? yield* choose(look, title, items.toReversed()) : String(Number(argument) - 1)
  if (choice === undefined) return undefined
  const prompt = prompts[Number(choice)]
  return prompt ?? (yield* Effect.fail(problem(`There is no turn ${cut(argument, 20)}; there are ${prompts.length}.`)))
})

/** The thread of a look, which has messages. */
const threadOf = ({ at: { thread } }: Look): Effect.Effect<string, Problem> =>
  thread === undefined ? Effect.fail(problem("Nothing was said yet.")) : Effect.succeed(thread)

/** Shows a thread that begins anew before a message, whose words go to the draft. */
const showBefore = Effect.fnUntraced(function* (look: Look, thread: string, { text }: Prompt) {
  look.ui.note("info", `── back to before: ${text}; files are as they are`)
  yield* openThread(look, thread)
  if (look.ui.input.text() === "") look.ui.input.set(text)
})

/** Goes back to before a message, for all who watch the thread. */
export const rewind = Effect.fnUntraced(function* (look: Look, argument: string) {
  const thread = yield* threadOf(look)
  const prompt = yield* choosePrompt(look, thread, argument, "go back to before …, for all who watch this thread")
  if (prompt === undefined) return
  look.at.isGoingBack = true
  yield* Effect.andThen(look.options.client.rewind(thread, prompt.before), showBefore(look, thread, prompt)).pipe(
    Effect.ensuring(
      Effect.sync(() => {
        look.at.isGoingBack = false
      })
    )
  )
})

/** Goes over to a copy of the thread, or of its beginning. */
export const fork = Effect.fnUntraced(function* (look: Look, argument: string) {
  const { client } = look.options
  const from = yield* threadOf(look)
  const prompt = argument === "" ? undefined : yield* choosePrompt(look, from, argument, "")
  const copy = yield* client.fork(from)
  if (prompt !== undefined) yield* client.rewind(copy, prompt.before)
  look.ui.note("info", cleanLine(`── a copy of the thread, ${copy}; the other one is ${from}`))
  yield* prompt === undefined ? openThread(look, copy) : showBefore(look, copy, prompt)
})
